"""Iceberg's functions in SQL: the results of the kernel's transforms, and conditions on them that leave out files."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import icefield
import pyarrow as pa
import pytest
from function_calls import COLUMNS, SCHEMA, UNITS, VALUES, calls, create_table_of_uuids, rows_of, transformed
from hypothesis import given
from hypothesis import strategies as st
from icefield import types as iceberg
from icefield.expressions import BooleanExpression, bind, evaluate
from icefield.toolkit import parse_transform
from icefield_spark.catalog.predicates import Filters
from pyspark.errors import AnalysisException


@pytest.mark.slow
@pytest.mark.spark
def test_functions_give_what_transforms_give(ice: Any, catalog: icefield.Catalog) -> None:
    rows = rows_of()
    catalog.create_table("db.t", SCHEMA).append(rows)
    items = [f"system.{call} AS c{at}" for at, (call, _, _) in enumerate(calls())]
    assert len(items) > 30
    found = ice.sql(f"SELECT {', '.join(items)} FROM db.t").toArrow().to_pydict().values()
    assert sorted(zip(*found, strict=True), key=repr) == sorted(transformed(rows), key=repr)


def of_one_row(name: str, value: Any) -> Any:
    return pa.table({name: pa.array([value], COLUMNS[name][1])})


@given(st.data())
def test_a_filter_keeps_every_row_that_its_condition_keeps(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["i", "n", "s", "d", "z", "t"]))
    kind = COLUMNS[name][0]
    functions = [each for each, unit in UNITS.items() if parse_transform(unit).can_transform(kind)]
    functions += ["truncate"] if parse_transform("truncate[1]").can_transform(kind) else []
    function, width = data.draw(st.sampled_from(functions)), data.draw(st.integers(1, 1000))
    transform = parse_transform(UNITS.get(function, f"truncate[{width}]"))
    value, other = (data.draw(VALUES[name]) for _ in range(2))
    bound = transform.apply(of_one_row(name, data.draw(st.sampled_from([value, other])))[name], kind)[0].as_py()
    bound = bound + dt.timedelta(1) if isinstance(bound, dt.date) and data.draw(st.booleans()) else bound
    operator = data.draw(st.sampled_from(["=", "<", "<=", ">", ">="]))
    given = [] if function in UNITS else [described(width)]
    call = {"function": f"icefield.{function}(any)", "arguments": [*given, {"column": [name]}]}
    predicate = {"function": operator, "arguments": [call, described(bound)]}
    got = transform.apply(of_one_row(name, value)[name], kind)[0].as_py()
    holds = {"=": got == bound, "<": got < bound, "<=": got <= bound, ">": got > bound, ">=": got >= bound}[operator]
    filters = Filters(SCHEMA)
    assert matches(filters.keeping([predicate]), name, value) or not holds
    exact = filters.exact([predicate])
    assert exact is None or matches(exact, name, value) == holds


def described(value: Any) -> dict[str, Any]:
    """A literal as the Java classes describe it."""
    if isinstance(value, dt.date):
        return {"type": "date", "value": str((value - dt.date(1970, 1, 1)).days)}
    kinds = {int: "long", str: "string"}
    return {"type": kinds.get(type(value), "decimal"), "value": str(value)}


def matches(made: BooleanExpression, name: str, value: Any) -> bool:
    """Whether a filter keeps a row."""
    return bool(evaluate(bind(SCHEMA, made), of_one_row(name, value).to_batches()[0])[0].as_py())


@pytest.fixture
def parted(catalog: icefield.Catalog) -> icefield.Table:
    """A table with a file for each of its partitions."""
    table = catalog.create_table("db.t", SCHEMA, partition_spec=["bucket[8](n)", "bucket[4](s)"])
    for number in range(20):
        day = dt.datetime(2024, 1, 1, 12) + dt.timedelta(days=number)
        row = {"n": number, "s": f"s{number}", "t": day, "c": Decimal(number)}
        table.append(pa.Table.from_pylist([row], schema=pa.schema([(each, COLUMNS[each][1]) for each in row])))
    return table


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("condition", "spelt"),
    [
        ("system.bucket(8, n) = 3", "bucket[8] n 3"),
        ("3 = test.system.bucket(8, n)", "bucket[8] n 3"),
        ("(system.bucket(8, n) IN (3, 5))", "bucket[8] n 3 5"),
        ("system.bucket(4, s) = 1 AND n >= 0", "bucket[4] s 1"),
    ],
)
def test_a_condition_on_a_bucket_leaves_out_the_files_of_others(
    ice: Any, parted: icefield.Table, condition: str, spelt: str
) -> None:
    transform, column, *among = spelt.split()
    wanted = parse_transform(transform)
    rows = parted.scan().to_arrow().to_pylist()
    kind = COLUMNS[column][0]
    kept = {row["n"] for row in rows if str(wanted.apply_value(row[column], kind)) in among}
    assert 0 < len(kept) < 20
    frame = ice.sql(f"SELECT * FROM db.t WHERE {condition}")
    assert {row.n for row in frame.collect()} == kept
    assert len(ice.explain(frame).files) == len(kept)


@pytest.mark.spark
def test_rows_are_grouped_and_ordered_by_one_function(ice: Any, parted: icefield.Table) -> None:
    query = (
        "SELECT system.bucket(4, n) AS b, count(*) FROM db.t GROUP BY system.bucket(4, n) ORDER BY system.bucket(4, n)"
    )
    found = ice.sql(query).collect()
    assert [row.b for row in found] == [0, 1, 2, 3]
    assert sum(row[1] for row in found) == 20


@pytest.mark.slow
@pytest.mark.spark
def test_a_bucket_of_a_uuid_leaves_out_no_file(ice: Any, catalog: icefield.Catalog) -> None:
    create_table_of_uuids(catalog)
    assert sum(ice.sql(f"SELECT * FROM db.u WHERE system.bucket(4, u) = {each}").count() for each in range(4)) == 8


@pytest.mark.slow
@pytest.mark.spark
def test_a_bucket_of_an_outer_join_leaves_out_no_row(ice: Any, parted: icefield.Table) -> None:
    query = "SELECT t.n FROM db.t t LEFT JOIN db.t u ON system.bucket(8, t.n) = 3 AND t.n = u.n"
    assert ice.sql(query).count() == 20
    query = "SELECT t.n, u.n AS m FROM db.t t LEFT JOIN db.t u ON t.n = u.n AND system.bucket(8, u.n) = 3"
    assert 0 < ice.sql(query).where("m IS NOT NULL").count() < 20


@pytest.mark.spark
def test_a_time_is_pushed_into_the_plan(ice: Any, parted: icefield.Table) -> None:
    found = ice.sql("SELECT n FROM db.t WHERE system.days(t) = DATE '2024-01-05'")
    assert [row.n for row in found.collect()] == [4]
    assert len(ice.explain(found).files) == 1


@pytest.mark.slow
@pytest.mark.spark
def test_changes_take_functions_in_every_clause(ice: Any, parted: icefield.Table) -> None:
    ice.sql("DELETE FROM db.t WHERE system.bucket(8, n) = 3")
    left = {row["n"] for row in parted.refresh().scan().to_arrow().to_pylist()}
    bucket = parse_transform("bucket[8]")
    assert left == {n for n in range(20) if bucket.apply_value(n, iceberg.LongType()) != 3}
    ice.sql("UPDATE db.t SET s = system.truncate(1, s) WHERE system.truncate(10, n) = 10")
    ice.sql(
        "MERGE INTO db.t t USING (SELECT 0L AS n, 'zero' AS s) s ON t.n = s.n "
        "WHEN MATCHED THEN UPDATE SET s = system.truncate(2, s.s), i = system.bucket(5, s.s)"
    )
    found = {row["n"]: row for row in parted.refresh().scan().to_arrow().to_pylist()}
    assert {row["s"] for n, row in found.items() if n >= 10} == {"s"}
    wanted = parse_transform("bucket[5]").apply_value("zero", iceberg.StringType())
    assert (found[0]["s"], found[0]["i"]) == ("ze", wanted)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("bucket(16, CAST(1 AS float))", "system.bucket takes no float"),
        ("hours(DATE '2024-01-01')", "system.hours takes no date"),
        ("bucket(16)", r"bucket\(count, value\)"),
        ("bucket(16L, 1)", "is an int, not bigint"),
        ("years()", r"years\(value\)"),
    ],
)
def test_what_a_function_does_not_take_is_refused(ice: Any, call: str, said: str) -> None:
    with pytest.raises(AnalysisException, match=said):
        ice.sql(f"SELECT system.{call} AS a")

"""Iceberg's functions in the SQL of Spark, as ``prod.system.bucket(4, id)``, and conditions on them."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import icefield
import pyarrow as pa
import pytest
from function_calls import COLUMNS, SCHEMA, UNITS, VALUES, calls, create_table_of_uuids, rows_of, taken_by, transformed
from hypothesis import given
from hypothesis import strategies as st
from icefield.expressions import bind, row_matches
from icefield.toolkit import parse_transform
from icefield_spark.catalog.predicates import Filters

NAMES = ["bucket", "days", "hours", "iceberg_version", "months", "truncate", "years"]
SPELT = {"i": "integer", "n": "long", "s": "string"}
_EPOCH = dt.datetime(1970, 1, 1)


@pytest.fixture
def parted(catalog: icefield.Catalog) -> icefield.Table:
    """A table with a file for each of its 20 rows."""
    properties = {f"write.{kind}.mode": "merge-on-read" for kind in ("delete", "update", "merge")}
    spec = ["bucket[8](n)", "bucket[4](s)", "day(z)", "truncate[10](i)"]
    table = catalog.create_table("db.t", SCHEMA, partition_spec=spec, properties=properties)
    for number in range(20):
        day = dt.datetime(2024, 1, 1, 12) + dt.timedelta(days=number)
        row = {"n": number, "s": f"s{number}", "t": day, "z": day, "c": Decimal(number), "i": number - 10}
        table.append(pa.Table.from_pylist([row], schema=pa.schema([(each, COLUMNS[each][1]) for each in row])))
    return table


def ids(table: icefield.Table) -> set[int]:
    return set(table.refresh().scan().select("n").to_arrow()["n"].to_pylist())


@pytest.mark.spark
@pytest.mark.slow
def test_functions_give_what_transforms_give(prod: Any, catalog: icefield.Catalog) -> None:
    rows = rows_of()
    catalog.create_table("db.t", SCHEMA).append(rows)
    prod.sql("USE prod")
    for codegen in ("true", "false"):
        prod.conf.set("spark.sql.codegen.wholeStage", codegen)
        prod.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if codegen == "true" else "NO_CODEGEN")
        items = [f"{'prod.' if at % 2 else ''}system.{call} AS c{at}" for at, (call, _, _) in enumerate(calls())]
        found = prod.sql(f"SELECT {', '.join(items)} FROM prod.db.t").toArrow().to_pydict().values()
        assert sorted(zip(*found, strict=True), key=repr) == sorted(transformed(rows), key=repr)
    for name in ("wholeStage", "factoryMode"):
        prod.conf.unset(f"spark.sql.codegen.{name}")


@pytest.mark.spark
def test_small_numbers_and_constants_are_taken_as_by_transforms(prod: Any) -> None:
    row = prod.sql(
        "SELECT prod.system.bucket(7Y, 5Y), prod.system.bucket(7S, 5S), prod.bucket(7, 5), prod.SYSTEM.BUCKET(7, 5L), "
        "prod.system.truncate(10, -128Y), prod.system.truncate(10, CAST(-32768 AS SMALLINT)), "
        "prod.system.bucket(CAST(NULL AS INT), 5), prod.system.bucket(7, CAST(NULL AS STRING)), "
        "prod.system.iceberg_version()"
    ).first()
    assert tuple(row) == (*[row[0]] * 4, 126, 32766, None, None, icefield.__version__)
    assert row[0] == parse_transform("bucket[7]").apply_value(5, COLUMNS["i"][0])


@pytest.mark.spark
@pytest.mark.slow
def test_functions_are_listed_and_names_that_are_not_there_are_sparks_own_error(prod: Any) -> None:
    def listed(statement: str) -> list[str]:
        """Without the temporary functions of the session, which are everywhere."""
        return [row[0] for row in prod.sql(statement).collect() if "." in row[0]]

    assert listed("SHOW USER FUNCTIONS IN prod.system") == [f"prod.system.{name}" for name in NAMES]
    assert listed("SHOW USER FUNCTIONS IN prod.system LIKE 'b*'") == ["prod.system.bucket"]
    assert listed("SHOW USER FUNCTIONS IN prod.db") == []
    with pytest.raises(Exception, match="SCHEMA_NOT_FOUND"):
        prod.sql("SHOW USER FUNCTIONS IN prod.nosuch")
    assert prod.catalog.functionExists("prod.system.bucket")
    for name in ("prod.system.nosuch", "prod.db.bucket", "system.bucket"):
        with pytest.raises(Exception, match="UNRESOLVED_ROUTINE"):
            prod.sql(f"SELECT {name}(4, 1)")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("bucket(16, CAST(1 AS float))", "system.bucket takes no float"),
        ("hours(DATE '2024-01-01')", "system.hours takes no date"),
        ("bucket(16)", r"bucket\(count, value\)"),
        ("bucket(16L, 1)", "the first argument of system.bucket is an int, not bigint"),
        ("years()", r"years\(value\)"),
        ("truncate(0, 1)", "the first argument of system.truncate is at least 1, not 0"),
    ],
)
def test_arguments_that_a_function_does_not_take_are_refused(prod: Any, call: str, said: str) -> None:
    with pytest.raises(Exception, match=said) as caught:
        prod.sql(f"SELECT prod.system.{call} AS a").collect()
    assert not re.search(r"Traceback|py4j|\tat ", str(caught.value))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("condition", "spelt"),
    [
        ("prod.system.bucket(8, n) = 3", "bucket[8] n 3"),
        ("3 = prod.system.bucket(8, n)", "bucket[8] n 3"),
        ("(prod.system.bucket(8, n) IN (3, 5))", "bucket[8] n 3 5"),
        ("prod.system.bucket(4, s) = 1 AND n >= 0", "bucket[4] s 1"),
        ("prod.system.days(z) = DATE '2024-01-05'", "day z 2024-01-05"),
        ("prod.system.days(t) = DATE '2024-01-05'", "day t 2024-01-05"),
        ("prod.system.truncate(10, i) = -10", "truncate[10] i -10"),
        ("prod.system.truncate(3, s) IN ('s11', 's12')", "truncate[3] s s11 s12"),
    ],
)
def test_a_condition_on_a_function_leaves_out_files(
    prod: Any, parted: icefield.Table, condition: str, spelt: str
) -> None:
    transform, column, *among = spelt.split()
    rows = parted.scan().to_arrow()
    results = parse_transform(transform).apply(rows[column], COLUMNS[column][0]).to_pylist()
    kept = {number for number, result in zip(rows["n"].to_pylist(), results, strict=True) if str(result) in among}
    assert 0 < len(kept) < 20
    frame = prod.sql(f"SELECT * FROM prod.db.t WHERE {condition}")
    assert {row.n for row in frame.collect()} == kept
    assert files_read(frame) == [len(kept)]


def files_read(frame: Any) -> list[int]:
    """How many files each scan of a frame reads, which has run."""
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return [int(each) for each in re.findall(r"files=(\d+)", plan)]


@pytest.mark.spark
@pytest.mark.slow
def test_scans_of_different_buckets_are_different_scans(prod: Any, parted: icefield.Table) -> None:
    part = "SELECT n FROM prod.db.t WHERE prod.system.bucket(8, n) ="
    counts = [prod.sql(f"{part} {number}").count() for number in range(8)]
    assert sum(counts) == 20
    union = " UNION ALL ".join(f"{part} {number}" for number in range(8))
    assert {row.n for row in prod.sql(union).collect()} == set(range(20))


@pytest.mark.spark
@pytest.mark.slow
def test_a_bucket_of_a_uuid_leaves_out_no_file(prod: Any, catalog: icefield.Catalog) -> None:
    create_table_of_uuids(catalog)
    counts = [prod.sql(f"SELECT * FROM prod.db.u WHERE prod.system.bucket(4, u) = {each}").count() for each in range(4)]
    assert sum(counts) == 8, "Spark has the hash of a string, and partitions that of sixteen bytes"


@pytest.mark.spark
@pytest.mark.slow
def test_a_bucket_of_an_outer_join_leaves_out_no_row(prod: Any, parted: icefield.Table) -> None:
    query = "SELECT t.n FROM prod.db.t t LEFT JOIN prod.db.t u ON prod.system.bucket(8, t.n) = 3 AND t.n = u.n"
    assert prod.sql(query).count() == 20
    query = (
        "SELECT t.n, u.n AS m FROM prod.db.t t LEFT JOIN prod.db.t u ON t.n = u.n AND prod.system.bucket(8, u.n) = 3"
    )
    assert 0 < prod.sql(query).where("m IS NOT NULL").count() < 20


@pytest.mark.spark
@pytest.mark.slow
def test_changes_take_functions_in_every_clause(prod: Any, parted: icefield.Table) -> None:
    left, bucket = set(range(20)), parse_transform("bucket[8]")
    prod.sql("DELETE FROM prod.db.t WHERE prod.system.days(z) = DATE '2024-01-05'")
    left -= {4}
    assert ids(parted) == left
    assert parted.snapshots()[-1].summary["operation"] == "delete"  # of a whole file, by its partition
    prod.sql("DELETE FROM prod.db.t WHERE prod.system.days(t) = DATE '2024-01-06' OR prod.system.truncate(10, n) = 7")
    left -= {5}
    assert ids(parted) == left
    prod.sql("DELETE FROM prod.db.t WHERE prod.system.bucket(8, n) = 3 AND prod.system.truncate(3, s) <> 's11'")
    left -= {n for n in left if bucket.apply_value(n, COLUMNS["n"][0]) == 3 and n != 11}
    assert ids(parted) == left
    prod.sql("UPDATE prod.db.t SET s = prod.system.truncate(1, s) WHERE NOT prod.system.truncate(10, n) = 0")
    prod.sql(
        "MERGE INTO prod.db.t t USING (SELECT 0L AS n, 'zero' AS s) s ON t.n = s.n "
        "AND prod.system.bucket(8, t.n) = prod.system.bucket(8, s.n) "
        "WHEN MATCHED THEN UPDATE SET s = prod.system.truncate(2, s.s), i = prod.system.bucket(5, s.s)"
    )
    found = {row["n"]: row for row in parted.refresh().scan().to_arrow().to_pylist()}
    assert set(found) == left
    assert {row["s"] for n, row in found.items() if n >= 10} == {"s"}
    wanted = parse_transform("bucket[5]").apply_value("zero", COLUMNS["s"][0])
    assert (found[0]["s"], found[0]["i"]) == ("ze", wanted)


@pytest.mark.spark
@pytest.mark.slow
def test_rows_to_replace_are_not_stated_by_a_bucket(prod: Any, parted: icefield.Table) -> None:
    from pyspark.sql import functions as f

    frame = prod.table("prod.db.t").where("n = 0")
    with pytest.raises(Exception, match=r"(?i)overwrite"):
        frame.writeTo("prod.db.t").overwrite(f.expr("prod.system.bucket(8, n) = 3"))
    assert ids(parted) == set(range(20))
    frame.writeTo("prod.db.t").overwrite(f.expr("prod.system.days(t) = DATE '2024-01-06'"))
    assert ids(parted) == set(range(20)) - {5}


def described(value: Any, kind: str) -> dict[str, Any]:
    """A literal as the Java classes describe it."""
    if isinstance(value, dt.date):
        return {"type": "date", "value": str((value - _EPOCH.date()).days)}
    return {"type": kind, "value": str(value)}


def conditions(data: st.DataObject) -> tuple[str, str, Any, str, dict[str, Any]]:
    """A column, a transform of it, a result to compare with, the comparison, and the call as Java describes it."""
    name = data.draw(st.sampled_from(["i", "n", "s", "d", "z", "t"]))
    width = data.draw(st.integers(1, 1000) | st.integers(1, (1 << 31) - 1))
    functions = {each: unit for each, unit in UNITS.items() if name in taken_by(unit)}
    if name in taken_by("truncate[1]"):
        functions["truncate"] = f"truncate[{width}]"
    function = data.draw(st.sampled_from(sorted(functions)))
    transform = functions[function]
    arguments = [{"type": "integer", "value": str(width)}] if function == "truncate" else []
    call = {"function": f"icefield.{function}(x)", "arguments": [*arguments, {"column": [name]}]}
    bound = result(transform, name, data.draw(VALUES[name]))
    if isinstance(bound, int | dt.date) and data.draw(st.booleans()):
        bound = bound + (1 if isinstance(bound, int) else dt.timedelta(1 if bound.year < 9999 else -1))
    return name, transform, bound, data.draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>", "IN"])), call


def result(transform: str, name: str, value: Any) -> Any:
    kind, form = COLUMNS[name]
    return parse_transform(transform).apply(pa.array([value], form), kind)[0].as_py()


@given(st.data())
def test_a_filter_of_a_function_is_exact_or_none(data: st.DataObject) -> None:
    name, transform, bound, operator, call = conditions(data)
    condition: dict[str, Any] = {
        "function": operator,
        "arguments": [call, described(bound, SPELT.get(name, "integer"))],
    }
    value = data.draw(
        VALUES[name] | st.none() | st.integers(-(1 << 31), 5 - (1 << 31)) if name == "i" else VALUES[name]
    )
    got = None if value is None else result(transform, name, value)
    holds = got is not None and {
        "=": got == bound, "<>": got != bound, "<": got < bound, "<=": got <= bound, ">": got > bound,
        ">=": got >= bound, "<=>": got == bound, "IN": got == bound,
    }[operator]  # fmt: skip
    negated = {"function": "NOT", "arguments": [condition]}
    filters = Filters(SCHEMA)
    for predicate, wanted in ((condition, holds), (negated, got is not None and not holds)):
        assert keeps(filters.keeping([predicate]), name, value) >= wanted
        exact = filters.exact([predicate])
        assert exact is None or keeps(exact, name, value) == wanted


def keeps(made: Any, name: str, value: Any) -> bool:
    """Whether a filter keeps a row."""
    if isinstance(value, dt.datetime):
        value = (value.replace(tzinfo=None) - _EPOCH) // dt.timedelta(microseconds=1)
    elif isinstance(value, dt.date):
        value = (value - _EPOCH.date()).days
    return row_matches(bind(SCHEMA, made), {**dict.fromkeys(COLUMNS), name: value})

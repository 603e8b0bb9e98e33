"""Frames of ``ice.table``: the rows that a query of them asks for, from fewer files and columns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument, InvalidExpression, NoSuchSnapshot, UnsupportedFeature
from icefield.scan import TableScan
from pyspark.errors import AnalysisException
from pyspark.sql import functions as f

pytestmark = pytest.mark.spark

Make = Callable[[Any], Any]
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        ("price", pa.float64()),
        ("amount", pa.decimal128(9, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("good", pa.bool_()),
        ("home", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
    ]
)
WORDS = ["ann", "a'b", "back\\slash\\n", 'q"%_', "zü", "line\nend"]


@pytest.fixture
def numbers(catalog: icefield.Catalog) -> icefield.Table:
    """Six files of ten rows, the middle ones from before a column was renamed and others were added."""
    table = catalog.create_table("db.numbers", SCHEMA)
    for at in range(6):
        ids = list(range(10 * at, 10 * at + 10))
        columns: dict[str, Any] = {"id": ids, "kind": [WORDS[at]] * 10}
        columns["price"] = [float("nan") if each % 10 == 9 else each / 4 for each in ids]
        columns["amount"] = [None if each % 7 == 0 else Decimal(each) for each in ids]
        columns["day"] = [date(2023, 12, 9 + at)] * 10
        columns["at"] = columns["wall"] = [1_700_000_000_000_000 + 3_600_000_000 * each for each in ids]
        columns["good"] = [None if at == 2 else at % 2 == 0] * 10
        columns["home"] = [None if at == 1 else {"city": f"c{each}", "zip": each} for each in ids]
        made = [pa.array(values, SCHEMA.field(name).type) for name, values in columns.items()]
        rows = pa.Table.from_arrays(made, schema=SCHEMA)
        if at == 3:
            with table.update_schema() as update:
                update.rename_column("good", "well").add_column("late", "int").rename_column("price", "cost")
        if at >= 3:
            rows = rows.rename_columns({"good": "well", "price": "cost"})
        table.append(rows)
    return table


def rows_of(frame: Any) -> list[str]:
    return sorted(map(repr, frame.collect()))


def files(ice: Any, frame: Any) -> list[int]:
    """How many files are read of each table."""
    found = ice.explain(frame)
    return [len(each.files) for each in (found, *found.others)]


FILTERS = [
    ("id = 33", 1),
    ("id > 41 AND kind = 'zü'", 1),
    ("id IN (1, 22, 99)", 2),
    ("id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)", 2),
    ("NOT (id < 50)", 1),
    ("id BETWEEN 5 AND 15", 2),
    ("kind = 'a\\'b'", 1),
    ("kind = 'back\\\\slash\\\\n'", 1),
    ("kind = 'q\"%_'", 1),
    ("kind = 'line\\nend'", 1),
    ("kind LIKE 'a%'", 2),
    ("kind <=> 'ann' OR id = 59", 2),
    ("cost > 12.25D AND cost < 14", 6),
    ("cost = 3.5D", 1),
    ("cost < 2.25", 1),
    ("amount >= 52.5", 1),
    ("day > '2023-12-12'", 2),
    ("year(day) = 2023 AND day = DATE '2023-12-09'", 1),
    ("at < TIMESTAMP '2023-11-14 20:00:00'", 1),
    ("wall < TIMESTAMP_NTZ '2023-11-15 00:00:00'", 1),
    ("cast(wall AS date) = '2023-11-16'", 3),
    ("well", 2),
    ("NOT well", 3),
    ("well IS NULL AND id < 30", 1),
    ("late IS NULL AND id = 1", 1),
    ("home IS NULL", 6),  # manifests count nulls of primitive fields only
    ("upper(kind) = 'ANN' AND id < 20", 2),
    ("id < 20 AND cost > 2.5 OR id > 55", 3),
]


@pytest.fixture
def model(spark: Any, ice: Any, numbers: icefield.Table) -> Any:
    """All rows of the table: Spark prunes no file."""
    return spark.createDataFrame(ice.table("db.numbers").collect(), ice.table("db.numbers").schema)


@pytest.mark.slow
@pytest.mark.parametrize("road", ["auto", "arrow"])
def test_filters_on_a_frame_choose_its_files(ice: Any, model: Any, road: str) -> None:
    frame = ice.table("db.numbers", road=road)
    for condition, count in FILTERS:
        found = frame.where(condition)
        assert rows_of(found) == rows_of(model.where(condition)), condition
        assert files(ice, found) == [count], condition
    assert any(frame.where(condition).count() for condition, _ in FILTERS)


@pytest.mark.slow
def test_columns_that_nobody_asks_for_are_not_read(ice: Any, numbers: icefield.Table) -> None:
    frame = ice.table("db.numbers", road="arrow")
    for made, columns in (
        (frame.select("kind", "id"), ("id", "kind")),
        (frame.where("id < 12").select("kind"), ("id", "kind")),
        (frame.groupBy("kind").count(), ("kind",)),
        (frame.where("home.zip = 4").selectExpr("home.city"), ("home",)),
        (frame.selectExpr("count(*) AS n"), ()),
    ):
        assert ice.explain(made).columns == columns


SHAPES: dict[str, Make] = {
    "a join": lambda t: t.where("id < 15").join(t.select("id", "kind").alias("o"), "id").where("o.kind = 'ann'"),
    "a left join": lambda t: t.join(t.where("id > 50").selectExpr("id", "kind AS k"), "id", "left").where("id > 45"),
    "nulls of a left join": lambda t: t.join(t.where("id > 50").selectExpr("id", "kind AS k"), "id", "left").where(
        "k IS NULL"
    ),
    "a full join": lambda t: t.where("id < 9").join(t.where("id > 5").selectExpr("id", "day AS d"), "id", "full"),
    "an anti join": lambda t: t.where("id < 25").join(t.where("id > 3"), "id", "anti"),
    "a union of one frame": lambda t: t.where("id = 1").union(t.where("id = 55")).union(t.where("id = 30")),
    "an intersection": lambda t: t.where("id < 20").intersect(t.where("id > 14")),
    "a difference": lambda t: t.where("id < 20").exceptAll(t.where("id > 14")),
    "a group": lambda t: t.groupBy("kind").agg({"id": "max"}).where("kind = 'ann'"),
    "a window": lambda t: t.selectExpr("id", "kind", "row_number() OVER (PARTITION BY kind ORDER BY id) r").where(
        "kind = 'ann' AND r < 3"
    ),
    "a sort": lambda t: t.where("id > 52").orderBy("id").limit(3).where("id < 55"),
    "distinct rows": lambda t: t.select("kind").distinct().where("kind > 'b'"),
    "new columns": lambda t: t.withColumn("twice", t.id * 2).where("twice = 20").drop("home"),
    "renamed columns": lambda t: t.withColumnRenamed("id", "kind2").where("kind2 = 7"),
    "an exploded column": lambda t: t.selectExpr("id", "explode(array(1, 2)) AS e").where("id = 4 AND e = 1"),
    "nothing": lambda t: t.where("id = 1 AND id = 2"),
    "all": lambda t: t.where("id >= 0"),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_whatever_a_frame_is_made_into_has_the_right_rows(ice: Any, model: Any, shape: str) -> None:
    for road in ("auto", "arrow"):
        made = SHAPES[shape](ice.table("db.numbers", road=road))
        assert rows_of(made) == rows_of(SHAPES[shape](model))


@pytest.mark.slow
def test_each_side_of_a_join_and_of_a_union_is_pruned_by_itself(ice: Any, numbers: icefield.Table) -> None:
    frame = ice.table("db.numbers")
    assert files(ice, SHAPES["a union of one frame"](frame)) == [1, 1, 1]
    right = ice.table("db.numbers").selectExpr("id AS key", "day").where("key > 47")
    found = frame.join(right, frame.id == right.key)
    assert files(ice, found) == [2, 2]  # the condition on one side holds for the other too
    assert str(ice.explain(found)).count("table     db.numbers") == 2


@pytest.mark.slow
def test_sql_over_a_view_of_a_frame_is_pruned(spark: Any, ice: Any, numbers: icefield.Table) -> None:
    ice.table("db.numbers").createOrReplaceTempView("numbers_seen")
    query = spark.sql(
        "WITH few AS (SELECT id, kind FROM numbers_seen WHERE id < 25) "
        "SELECT f.id, (SELECT max(id) FROM few) AS most FROM few f WHERE f.kind = 'ann'"
    )
    assert sorted(query.collect()) == [(at, 24) for at in range(10)]
    assert files(ice, spark.sql("SELECT kind FROM numbers_seen WHERE id = 7")) == [1]
    for change in ("INSERT INTO numbers_seen (id, kind) VALUES (1, 'a')", "DELETE FROM numbers_seen WHERE id = 1"):
        with pytest.raises(AnalysisException, match=r"(?i)does not support|cannot delete"):
            spark.sql(change)
    assert ice.count("db.numbers") == 60


@pytest.mark.slow
def test_a_frame_stays_at_its_snapshot_and_keeps_its_own_filter(ice: Any, numbers: icefield.Table) -> None:
    frame, whole = ice.table("db.numbers", where="id < 35").where("id > 28"), ice.table("db.numbers")
    assert whole.count() == 60
    numbers.delete("id = 30")
    with numbers.update_schema() as update:
        update.delete_column("day")
    assert sorted(row.id for row in frame.collect()) == list(range(29, 35))
    assert files(ice, frame) == [2]
    assert whole.count() == 60
    assert whole.where("day = DATE '2023-12-09'").count() == 10


@pytest.mark.slow
def test_values_that_a_join_finds_leave_out_files(spark: Any, ice: Any, catalog: icefield.Catalog) -> None:
    table = catalog.create_table(
        "db.days", pa.schema([("id", pa.int64()), ("day", pa.int64())]), partition_spec=["day"]
    )
    table.append(pa.table({"id": range(100), "day": [each % 20 for each in range(100)]}))
    few = spark.range(20).selectExpr("id AS day", "id AS number").where("number % 10 = 3")
    joined = ice.table("db.days").join(few, "day")
    assert sorted(row.id for row in joined.collect()) == [each for each in range(100) if each % 10 == 3]
    plan = joined._jdf.queryExecution().executedPlan().toString()
    assert "dynamicpruning" in plan.lower()


@pytest.mark.slow
def test_one_action_takes_one_plan(ice: Any, numbers: icefield.Table, monkeypatch: Any) -> None:
    made, plan_files = [], TableScan.plan_files

    def noted(scan: TableScan, **options: Any) -> Any:
        made.append(scan)
        return plan_files(scan, **options)

    monkeypatch.setattr(TableScan, "plan_files", noted)
    frame = ice.table("db.numbers", where="id < 30")
    assert made == []
    for _ in range(2):
        assert len(frame.collect()) == 30
        assert ice.explain(frame).row_filter == "id < 30"
    assert len(made) == 1
    assert frame.where("id < 10").count() == 10
    assert len(made) == 2


@pytest.mark.slow
def test_metadata_columns_and_parts_of_columns_are_kept(ice: Any, numbers: icefield.Table) -> None:
    for road in ("auto", "arrow"):
        frame = ice.table("db.numbers", columns=["_file", "_pos", "id", "home.zip"], road=road)
        assert frame.columns == ["_file", "_pos", "id", "home"]
        assert frame.schema["home"].dataType.names == ["zip"]
        assert [(row._pos, row.home.zip) for row in frame.where("id = 3").collect()] == [(3, 3)]
        found = frame.where("_pos = 3 AND id < 20").select("_file", "home").collect()
        assert sorted(row.home or () for row in found) == [(), (3,)]
        places = numbers.scan("id in (3, 13)", selected_fields=("_file",)).to_arrow()["_file"].to_pylist()
        assert sorted(row._file for row in found) == sorted(places)
        assert len(ice.explain(frame.where("id = 3")).files) == 1
    assert ice.table("db.numbers").where("id = 3").select("_pos").collect() == [(3,)]


CONDITIONS = [("id = 33", 1), ("upper(kind) = 'ANN' AND id < 20", 2), ("home.zip = 4", 1), ("id % 20 = 3", 6)]


@pytest.mark.slow
@pytest.mark.parametrize(("condition", "count"), CONDITIONS)
def test_a_column_of_sparks_is_a_condition(ice: Any, model: Any, condition: str, count: int) -> None:
    rows = rows_of(model.where(condition).select("day", "home.zip"))
    given = f.expr(condition)
    found = ice.table("db.numbers", given, ["day", "home.zip", "_pos"])
    assert found.columns == ["day", "home", "_pos"]
    assert rows_of(found.select("day", "home.zip")) == rows
    assert len(ice.explain("db.numbers", given).files) == count
    assert ice.count("db.numbers", given) == len(rows)


@pytest.mark.slow
def test_rows_are_deleted_and_replaced_by_a_column_of_sparks(ice: Any, numbers: icefield.Table) -> None:
    ice.delete("db.numbers", f.col("id") < 10, snapshot_properties={"by": "whole files"})
    assert ice.catalog.load_table("db.numbers").current_snapshot().summary["by"] == "whole files"
    ice.delete("db.numbers", f.upper("kind") == "A'B", snapshot_properties={"by": "rows"})
    assert ice.catalog.load_table("db.numbers").current_snapshot().summary["by"] == "rows"
    ice.delete("db.numbers", (f.col("id") % 2 == 1) & (f.col("id") > 50))
    assert ice.count("db.numbers") == 35
    row = ice.table("db.numbers", f.col("id") == 20)
    ice.overwrite(row.withColumn("id", f.lit(99)), "db.numbers", f.col("id").between(20, 29))
    assert sorted(each.id for each in ice.table("db.numbers").select("id").collect()) == [
        *range(30, 51), 52, 54, 56, 58, 99,
    ]  # fmt: skip
    with pytest.raises(UnsupportedFeature, match="an overwrite replaces rows that comparisons"):
        ice.overwrite(row, "db.numbers", f.upper("kind") == "ANN")


def test_a_frame_of_no_table_is_not_explained(spark: Any, ice: Any) -> None:
    with pytest.raises(InvalidArgument, match="reads no table"):
        ice.explain(spark.range(3))


@pytest.mark.slow
def test_mistakes_are_raised_before_anything_is_read(ice: Any, numbers: icefield.Table) -> None:
    for error, options in (
        (InvalidExpression, {"where": "nosuch = 1"}),
        (InvalidExpression, {"where": "id = 'x'"}),
        (InvalidArgument, {"columns": ["nosuch"]}),
        (NoSuchSnapshot, {"ref": "nosuch"}),
        (NoSuchSnapshot, {"snapshot_id": 5}),
    ):
        with pytest.raises(error):
            ice.table("db.numbers", **options)


@pytest.mark.slow
def test_names_in_another_case_are_found(ice: Any, numbers: icefield.Table) -> None:
    found = ice.table("db.numbers", where="ID < 3", columns=["KIND", "Home.ZIP"])
    assert found.columns == ["kind", "home"]
    assert sorted(row.home.zip for row in found.collect()) == [0, 1, 2]
    with pytest.raises(InvalidExpression):
        ice.table("db.numbers", where="ID < 3", case_sensitive=True)


@pytest.mark.slow
def test_without_the_catalog_a_frame_is_planned_at_once(ice: Any, model: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(ice._statements, "serves", lambda session: False)
    frame = ice.table("db.numbers", "id < 35", ["id"])
    assert ice.explain(frame).row_filter == ice.explain("db.numbers", "id < 35").row_filter == "id < 35"
    assert rows_of(frame) == rows_of(model.where("id < 35").select("id"))
    given = ice.table("db.numbers", f.upper("kind") == "ANN", ["home.zip"])
    assert rows_of(given.select("home.zip")) == rows_of(model.where("kind = 'ann'").select("home.zip"))
    assert ice.count("db.numbers", f.upper("kind") == "ANN") == 10

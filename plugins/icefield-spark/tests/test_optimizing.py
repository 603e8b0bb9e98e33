"""``ice.optimize``: the rows are those of the frame as it was, and fewer files and columns are read for them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument, UnsupportedFeature

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
    ("home IS NULL", 6),  # manifests count the nulls of what is in a struct only
    ("upper(kind) = 'ANN' AND id < 20", 2),
    ("id < 20 AND cost > 2.5 OR id > 55", 3),
]


@pytest.mark.slow
@pytest.mark.parametrize("road", ["auto", "arrow"])
def test_filters_on_a_frame_choose_its_files_and_keep_its_rows(ice: Any, numbers: icefield.Table, road: str) -> None:
    for condition, count in FILTERS:
        frame = ice.table("db.numbers", road=road).where(condition)
        found = ice.optimize(frame)
        assert rows_of(found) == rows_of(frame), condition
        assert found.schema == frame.schema
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
        (frame.selectExpr("count(*) AS n"), ("id",)),
    ):
        found = ice.optimize(made)
        assert rows_of(found) == rows_of(made)
        assert ice.explain(found).columns == columns


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
def test_whatever_a_frame_is_made_into_keeps_its_rows(ice: Any, numbers: icefield.Table, shape: str) -> None:
    for road in ("auto", "arrow"):
        made = SHAPES[shape](ice.table("db.numbers", road=road))
        found = ice.optimize(made)
        assert rows_of(found) == rows_of(made)
        assert found.schema == made.schema


@pytest.mark.slow
def test_each_side_of_a_join_and_of_a_union_is_planned_by_itself(ice: Any, numbers: icefield.Table) -> None:
    frame = ice.table("db.numbers")
    assert files(ice, ice.optimize(SHAPES["a union of one frame"](frame))) == [1, 1, 1]
    right = ice.table("db.numbers").selectExpr("id AS key", "day").where("key > 47")
    found = ice.optimize(frame.join(right, frame.id == right.key))
    assert files(ice, found) == [2, 2]  # the condition on one side holds for the other too
    assert str(ice.explain(found)).count("table     db.numbers") == 2


@pytest.mark.slow
def test_sql_over_views_of_frames_is_optimized(spark: Any, ice: Any, numbers: icefield.Table) -> None:
    ice.table("db.numbers").createOrReplaceTempView("numbers_seen")
    query = spark.sql(
        "WITH few AS (SELECT id, kind FROM numbers_seen WHERE id < 25) "
        "SELECT f.id, (SELECT max(id) FROM few) AS most FROM few f WHERE f.kind = 'ann'"
    )
    found = ice.optimize(query)
    assert rows_of(found) == rows_of(query) != []
    plain = spark.sql("SELECT kind FROM numbers_seen WHERE id = 7")
    assert files(ice, ice.optimize(plain)) == [1]


@pytest.mark.slow
def test_a_frame_stays_at_its_snapshot_and_keeps_its_own_filter(ice: Any, numbers: icefield.Table) -> None:
    frame = ice.table("db.numbers", where="id < 35").where("id > 28")
    numbers.delete("id = 30")
    found = ice.optimize(frame)
    assert sorted(row.id for row in found.collect()) == list(range(29, 35))
    assert files(ice, found) == [2]


@pytest.mark.slow
def test_what_is_optimized_can_be_optimized_no_further_and_other_frames_stay(
    spark: Any, ice: Any, numbers: icefield.Table
) -> None:
    for frame in (
        ice.table("db.numbers"),
        spark.range(3).where("id = 1"),
        ice.optimize(ice.table("db.numbers").where("id = 1")),
    ):
        assert ice.optimize(frame) is frame
    with pytest.raises(InvalidArgument, match="reads no table"):
        ice.explain(spark.range(3))


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.where("rand() < 0.5 AND id = 3"),
        lambda t: t.where("at < now() AND id = 3"),
        lambda t: t.selectExpr("id", "monotonically_increasing_id() m").where("id = 3"),
        lambda t: t.sample(0.5, 7).where("id = 3"),
    ],
)
def test_what_depends_on_the_time_or_on_the_place_of_rows_stays(ice: Any, numbers: icefield.Table, make: Make) -> None:
    frame = make(ice.table("db.numbers"))
    assert ice.optimize(frame) is frame


def test_what_is_cached_is_read_from_the_cache(ice: Any, numbers: icefield.Table) -> None:
    cached = ice.table("db.numbers").where("id > 10").cache()
    try:
        frame = cached.where("id = 12")
        assert ice.optimize(frame) is frame
    finally:
        cached.unpersist()


@pytest.mark.slow
def test_metadata_columns_and_parts_of_columns_are_kept(ice: Any, numbers: icefield.Table) -> None:
    frame = ice.table("db.numbers", columns=["_file", "_pos", "id", "home.zip"], road="arrow")
    for made in (frame.where("id = 3"), frame.where("_pos = 3 AND id < 20").select("_file", "home")):
        found = ice.optimize(made)
        assert rows_of(found) == rows_of(made) != []
        assert found.schema == made.schema
        assert len(ice.explain(found).files) < 3


def test_without_a_plan_at_hand_it_is_refused(ice: Any, numbers: icefield.Table, monkeypatch: Any) -> None:
    frame = ice.table("db.numbers")
    monkeypatch.setattr("icefield_spark.optimizing.is_connected", lambda session: True)
    with pytest.raises(UnsupportedFeature, match="Spark Connect"):
        ice.optimize(frame)

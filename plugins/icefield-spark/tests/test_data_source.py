"""The data source in Spark's own reader, writer and SQL, found without registration."""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException

pytestmark = pytest.mark.spark

SWITCH = "spark.sql.python.filterPushdown.enabled"
Found = Callable[[], set[str]]


@pytest.fixture
def read(spark: Any, people: icefield.Table, options: dict[str, str]) -> Callable[..., Any]:
    """``spark.read.format("icefield")`` with the test's catalog."""

    def made(identifier: str = "db.people", schema: str | None = None, **more: str) -> Any:
        reader = spark.read.format("icefield").options(**options, **more)
        return (reader if schema is None else reader.schema(schema)).load(identifier)

    return made


@pytest.fixture
def write(people: icefield.Table, options: dict[str, str]) -> Callable[..., None]:
    """``df.write.format("icefield")`` with the test's catalog."""

    def done(frame: Any, mode: str, **more: str) -> None:
        frame.write.format("icefield").options(**options, **more).mode(mode).save("db.people")

    return done


def ids(table: icefield.Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def test_a_table_is_read_on_stock_settings_without_registration(spark: Any, read: Any, properties: Any) -> None:
    assert spark.conf.get(SWITCH, "false") == "false"
    frame = read().filter("id >= 2 and home is not null").select("id", "home.zip")
    assert frame.collect() == [(3, 7)]
    assert properties["s3.secret-access-key"] not in frame._jdf.queryExecution().toString()


def test_a_schema_of_ones_own_reads_fewer_columns(read: Any) -> None:
    frame = read(schema="home struct<zip: int>, id bigint")
    assert sorted(frame.collect(), key=lambda row: row[1]) == [((150,), 1), (None, 2), ((7,), 3)]


def test_a_schema_that_does_not_fit_is_told_by_icefield(read: Any) -> None:
    with pytest.raises(PySparkException, match=r"icefield\.errors\.InvalidArgument: column 'id' is bigint, not int"):
        read(schema="id int").collect()


def test_a_table_that_is_not_there_is_told_when_it_is_named(read: Any) -> None:
    with pytest.raises(AnalysisException, match=r"icefield\.errors\.NoSuchTable: no table db\.nosuch"):
        read("db.nosuch")


def test_both_sides_of_a_join_with_itself_read_one_version(
    spark: Any, read: Any, people: icefield.Table, write: Any
) -> None:
    frame, fresh = read(), read(pinned="false")
    write(spark.range(4, 5), "append")
    assert frame.alias("a").join(frame.alias("b"), "id").count() == 3
    assert fresh.count() == 4
    assert read(**{"snapshot-id": str(people.current_snapshot().snapshot_id)}).count() == 3


def test_rows_are_appended_and_replaced(
    spark: Any, people: icefield.Table, write: Any, data_files: Found, committed: Any
) -> None:
    write(spark.range(4, 6, 1, 2), "append", **{"snapshot-property.job": "nightly"})
    assert ids(people) == [1, 2, 3, 4, 5]
    assert people.current_snapshot().summary["job"] == "nightly"
    assert data_files() == committed("db.people")
    write(spark.range(9, 10), "overwrite", **{"overwrite-where": "id >= 2 and id <= 4"})
    assert ids(people) == [1, 5, 9]
    write(spark.range(7, 8), "overwrite")
    assert ids(people) == [7]


@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_the_other_modes_get_what_spark_gives(spark: Any, people: icefield.Table, write: Any, mode: str) -> None:
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        write(spark.range(4, 6), mode)
    assert ids(people) == [1, 2, 3]


def test_columns_that_do_not_fit_are_told_before_the_job(spark: Any, people: icefield.Table, write: Any) -> None:
    with pytest.raises(AnalysisException, match="'nosuch' cannot be written: the table has no such column"):
        write(spark.sql("select cast(raise_error('computed') as bigint) as id, 1 as nosuch"), "append")


def test_when_a_task_fails_nothing_is_visible_and_nothing_is_left(
    spark: Any, people: icefield.Table, write: Any, data_files: Found, tmp_path: Path
) -> None:
    before = data_files()
    folder, count = str(tmp_path / "warehouse"), len(before)

    def fails_after_its_sibling(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.column(0)[0].as_py() >= 10:
                deadline = time.monotonic() + 60
                while len(list(Path(folder).rglob("*.parquet"))) == count and time.monotonic() < deadline:
                    time.sleep(0.05)
                time.sleep(1)  # until the driver has heard of it
                raise RuntimeError("planted")
            yield batch

    with pytest.raises(PySparkException, match="planted"):
        write(spark.range(9, 11, 1, 2).mapInArrow(fails_after_its_sibling, "id long"), "append")
    assert ids(people) == [1, 2, 3]
    assert data_files() == before


def test_sql_reads_and_writes_through_a_temporary_view(
    spark: Any, people: icefield.Table, options: dict[str, str]
) -> None:
    given = {**options, "path": "db.people", "pinned": "false"}
    text = ", ".join(f"`{key}` '{value}'" for key, value in given.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW people USING icefield OPTIONS ({text})")
    try:
        assert spark.sql("SELECT home.city FROM people WHERE id = 1").collect() == [("Oslo",)]
        spark.sql("INSERT INTO people VALUES (4, 'dee', NULL), (5, 'eve', named_struct('city', 'Rome', 'zip', 9))")
        spark.sql("INSERT INTO people (name, id) VALUES ('fay', 6)")
        rows = spark.sql("SELECT id, name, home.city FROM people WHERE id > 3 ORDER BY id").collect()
        assert rows == [(4, "dee", None), (5, "eve", "Rome"), (6, "fay", None)]
        spark.sql("INSERT OVERWRITE people SELECT id, upper(name), home FROM people WHERE id = 1")
        assert people.refresh().scan(selected_fields=("id", "name")).to_arrow().to_pylist() == [
            {"id": 1, "name": "ANN"}
        ]
    finally:
        spark.catalog.dropTempView("people")


# -- filters ------------------------------------------------------------------------------------------------------

FILTERS = [
    "d > 1.5 or d < 0",  # nothing of an OR is pushed
    "d > 1.5",
    "not (d <= 1.5)",
    "d = double('NaN') and id <=> 2",
    "name <=> null",
    "not (name <=> 'b')",
    "name in ('a', 'c', null)",
    "id not in (1, 2)",
    "name like 'a%' and s.x >= 2",
    "day >= date'2024-03-10' and wall < timestamp_ntz'2024-03-10 02:30:00'",
    "instant = timestamp'2024-03-10 01:30:00'",  # in the session's zone
    "price > 1.005 and flag and data >= X'61'",
    "u = '00010203-0405-0607-0809-0a0b0c0d0e0f'",
]


def _rows() -> tuple[pa.Schema, pa.Table]:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("d", pa.float64()),
            ("name", pa.string()),
            ("s", pa.struct([("x", pa.int32())])),
            ("day", pa.date32()),
            ("wall", pa.timestamp("us")),
            ("instant", pa.timestamp("us", "UTC")),
            ("price", pa.decimal128(9, 2)),
            ("flag", pa.bool_()),
            ("data", pa.binary()),
            ("u", pa.uuid()),
        ]
    )
    columns = {
        "id": [1, 2, 3, 4, 5, None],
        "d": [math.nan, math.nan, 1.5, -0.0, 2.5, None],
        "name": ["a", "b", None, "abc", "c", ""],
        "s": [{"x": 1}, {"x": 2}, None, {"x": 3}, {"x": None}, {"x": 2}],
        "day": [dt.date(2024, 3, day) for day in (9, 10, 11)] * 2,
        "wall": [dt.datetime(2024, 3, 10, 2), None, dt.datetime(2024, 3, 10, 2, 30)] * 2,
        "instant": [dt.datetime(2024, 3, 10, 9, 30, tzinfo=dt.UTC), None, dt.datetime(2024, 3, 10, 1, 30)] * 2,
        "price": [1, 2, None] * 2,
        "flag": [True, False, None, True, True, False],
        "data": [b"a", b"\xff", b"", None, b"b", b"a"],
        "u": [bytes(range(16)), b"\xff" * 16, None] * 2,
    }
    return schema, pa.table(columns, schema=schema)


def test_filters_that_are_taken_give_the_rows_that_spark_would(
    spark: Any, catalog: icefield.Catalog, options: dict[str, str], read: Any
) -> None:
    schema, rows = _rows()
    table = catalog.create_table("db.filtered", schema)
    for start in range(0, 6, 2):
        table.append(rows.slice(start, 2))
    plain = read("db.filtered").cache()  # read without any filter, filtered by Spark alone
    taking = read("db.filtered", pushdown="true")
    spark.conf.set(SWITCH, "true")
    try:
        for text in FILTERS:
            expected = sorted(plain.filter(text).toArrow()["id"].to_pylist(), key=str)
            found = sorted(taking.filter(text).toArrow()["id"].to_pylist(), key=str)
            assert found == expected, text
        one_file = taking.filter("id = 5")
        assert one_file.rdd.getNumPartitions() == 1
        assert "PushedFilters" in one_file._jdf.queryExecution().toString()
    finally:
        spark.conf.unset(SWITCH)
        plain.unpersist()


def test_spark_tells_of_its_switch_when_filters_are_to_be_taken_and_it_is_off(read: Any) -> None:
    with pytest.raises(AnalysisException, match=SWITCH.replace(".", r"\.")):
        read(pushdown="true").collect()


def test_a_table_without_rows_and_a_filter_without_matches_give_none(
    spark: Any, catalog: icefield.Catalog, read: Any
) -> None:
    catalog.create_table("db.empty", pa.schema([("id", pa.int64())]))
    assert read("db.empty").count() == 0
    spark.conf.set(SWITCH, "true")
    try:
        assert read(pushdown="true").filter("id > 99").collect() == []
    finally:
        spark.conf.unset(SWITCH)

"""The session on a real Spark: what is written there is read here, and the other way round."""

from __future__ import annotations

import datetime as dt
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument, InvalidExpression, NoSuchSnapshot, NoSuchTable
from icefield.schema import Schema
from icefield.types import ListType, MapType, NestedField, StructType, parse_type
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql import types

pytestmark = pytest.mark.spark

Found = Callable[[], set[str]]
Committed = Callable[[str], set[str]]

# Executors cannot import a test module: what it defines travels with the job.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def ids(frame: Any) -> list[int]:
    return sorted(frame.toArrow()["id"].to_pylist())


# -- types --------------------------------------------------------------------------------------------------------

VALUES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int": [-(2**31), 2**31 - 1],
    "long": [-(2**63), 2**63 - 1],
    "float": [float("-inf"), 1.5],
    "double": [-0.0, 1e300],
    "decimal(38,0)": [Decimal(10**38 - 1), Decimal(1 - 10**38)],
    "decimal(9,2)": [Decimal("-9999999.99"), Decimal("0.01")],
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "time": [dt.time(0), dt.time(23, 59, 59, 999999)],
    "timestamp": [dt.datetime(1, 1, 1), dt.datetime(2024, 3, 10, 2, 30)],  # no such time in Los Angeles
    "timestamptz": [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC)] * 2,
    "timestamp_ns": [1, -(2**62)],
    "timestamptz_ns": [1, -(2**62)],
    "string": ["", "a\U0001f600\u0000"],
    "uuid": [bytes(range(16)), b"\xff" * 16],
    "fixed[3]": [b"abc", b"\x00\xff\x80"],
    "binary": [b"", b"\xff\x00"],
    "unknown": [None, None],
}

LAST = pa.array([False, False, True])
"""Of three rows the last is null."""


def _column(kind: str, values: list[Any]) -> pa.Array:
    from icefield.toolkit import to_arrow_type

    target = to_arrow_type(parse_type(kind))
    if kind.endswith("_ns"):
        return pa.array(values, pa.int64()).cast(target)
    return pa.array(values, target)


def _every_type() -> tuple[Schema, pa.Table]:
    """A column of each type with two values and a null, each type again in a list, some in a struct and a map."""
    fields: list[NestedField] = []
    arrays: list[pa.Array] = []
    for number, (kind, values) in enumerate(VALUES.items()):
        fields.append(NestedField(10 * number + 1, f"c{number}", parse_type(kind), doc=f"a {kind}"))
        arrays.append(_column(kind, [*values, None]))
        fields.append(NestedField(10 * number + 2, f"l{number}", ListType(10 * number + 3, parse_type(kind))))
        flat = _column(kind, [*values, None])
        arrays.append(pa.ListArray.from_arrays(pa.array([0, 3, 3, 3], pa.int32()), flat, mask=LAST))
    inner = StructType(
        NestedField(1002, "u", parse_type("uuid")),
        NestedField(1003, "deep", ListType(1004, StructType(NestedField(1005, "t", parse_type("timestamptz")))), True),
    )
    fields.append(NestedField(1001, "s", inner))
    instants = pa.StructArray.from_arrays([_column("timestamptz", VALUES["timestamptz"])], names=["t"])
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 2], pa.int32()), instants)
    uuids = _column("uuid", [VALUES["uuid"][0], None, None])
    arrays.append(pa.StructArray.from_arrays([uuids, lists], names=["u", "deep"], mask=LAST))
    fields.append(NestedField(1006, "m", MapType(1007, parse_type("uuid"), 1008, parse_type("time"))))
    keys, times = _column("uuid", VALUES["uuid"]), _column("time", [None, VALUES["time"][1]])
    arrays.append(pa.MapArray.from_arrays(pa.array([0, 2, 2, 2], pa.int32()), keys, times, mask=LAST))
    fields.append(NestedField(1009, "id", parse_type("long"), True))
    arrays.append(pa.array([1, 2, 3]))
    return Schema(*fields), pa.Table.from_arrays(arrays, names=[field.name for field in fields])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(types, "TimeType"), reason="Spark 4.1 and later have the type time")
@pytest.mark.spec("TYP-02", "TYP-05", "TYP-07", "TYP-08", "TYP-09", "TYP-13", "TYP-14", "TYP-15", "TYP-17", "TYP-18")
def test_every_type_goes_to_spark_and_comes_back_as_it_was(ice: Any, catalog: icefield.Catalog) -> None:
    schema, rows = _every_type()
    properties = {"format-version": "3"}
    table = catalog.create_table("db.every", schema, properties=properties)
    table.append(rows)
    frame = ice.table("db.every")
    shown = frame.toArrow()
    assert shown["id"].to_pylist() == [1, 2, 3]
    texts = ["00010203-0405-0607-0809-0a0b0c0d0e0f", "ffffffff-ffff-ffff-ffff-ffffffffffff", None]
    uuid = f"c{list(VALUES).index('uuid')}"
    assert shown[uuid].to_pylist() == texts
    assert shown[f"c{list(VALUES).index('timestamp_ns')}"].to_pylist() == [1, -(2**62), None]
    assert frame.schema[uuid].metadata == {"comment": "a uuid"}
    assert not frame.schema["id"].nullable

    catalog.create_table("db.again", schema, properties=properties)
    ice.append(frame, "db.again")
    again = ice.catalog.load_table("db.again")
    assert again.scan().to_arrow().sort_by("id").equals(table.scan().to_arrow().sort_by("id"))


@pytest.mark.slow
@pytest.mark.spec("TYP-10", "TYP-11", "TYP-30")
def test_a_wall_clock_stays_and_an_instant_stays_whatever_the_zone_of_the_session(
    ice: Any, catalog: icefield.Catalog
) -> None:
    """The session's zone is Los Angeles."""
    noon = "2017-11-16 17:10:34"
    frame = ice.spark.sql(f"select 1L as id, timestamp_ntz'{noon}' as wall, timestamp'{noon}' as instant")
    table = ice.create_table("db.clocks", frame)
    ice.append(frame, "db.clocks")
    (row,) = table.refresh().scan().to_arrow().to_pylist()
    assert row["wall"] == dt.datetime(2017, 11, 16, 17, 10, 34)
    assert row["instant"] == dt.datetime(2017, 11, 17, 1, 10, 34, tzinfo=dt.UTC)
    zone = "spark.sql.session.timeZone"
    before = ice.spark.conf.get(zone)
    try:
        for other, instant in ((before, noon), ("UTC", "2017-11-17 01:10:34"), ("Asia/Kolkata", "2017-11-17 06:40:34")):
            ice.spark.conf.set(zone, other)
            texts = ice.table("db.clocks").selectExpr("cast(wall as string)", "cast(instant as string)").first()
            assert tuple(texts) == (noon, instant)
    finally:
        ice.spark.conf.set(zone, before)


# -- reading ------------------------------------------------------------------------------------------------------


def test_a_frame_has_the_columns_that_were_asked_for_in_that_order_and_the_rows_that_match(
    ice: Any, people: icefield.Table
) -> None:
    frame = ice.table("db.people", where="id >= 2", columns=["home.zip", "_pos", "id"])
    assert frame.columns == ["home", "_pos", "id"]
    assert frame.toArrow().to_pylist() == [{"home": None, "_pos": 1, "id": 2}, {"home": {"zip": 7}, "_pos": 2, "id": 3}]


@pytest.mark.slow
def test_names_are_compared_as_spark_compares_them_unless_it_is_asked_otherwise(
    ice: Any, people: icefield.Table
) -> None:
    frame = ice.table("db.people", where="ID = 1", columns=["NAME", "Id"])
    assert frame.toArrow().to_pylist() == [{"name": "ann", "id": 1}]
    other = ice.spark.sql("select 4L as ID, named_struct('CITY', 'Rome') as Home")
    ice.append(other, "db.people")
    table = ice.catalog.load_table("db.people")
    assert table.scan("id = 4", ("id", "home.city")).to_arrow().to_pylist() == [{"id": 4, "home": {"city": "Rome"}}]
    with pytest.raises(InvalidArgument, match="NAME"):
        ice.table("db.people", columns=["NAME"], case_sensitive=True)
    ice.spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(InvalidArgument, match="NAME"):
            ice.table("db.people", columns=["NAME"])
        with pytest.raises(InvalidArgument, match="names are compared exactly"):
            ice.append(other, "db.people")
    finally:
        ice.spark.conf.unset("spark.sql.caseSensitive")


def test_an_earlier_state_is_read_by_snapshot_by_name_and_by_time(ice: Any, people: icefield.Table) -> None:
    first = people.current_snapshot()
    people.manage_snapshots().create_tag(first.snapshot_id, "before").commit()
    time.sleep(0.002)
    people.append(pa.table({"id": pa.array([4], pa.int64())}))
    frames = [
        ice.table("db.people", snapshot_id=first.snapshot_id),
        ice.table("db.people", ref="before"),
        ice.table("db.people", as_of=dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC)),
    ]
    both = frames[0].union(frames[1]).union(frames[2]).groupBy("id").count().toArrow().sort_by("id")
    assert both.to_pylist() == [{"id": i, "count": 3} for i in (1, 2, 3)]


def test_a_frame_stays_as_it_was_when_it_was_made(ice: Any, people: icefield.Table) -> None:
    frame = ice.table("db.people")
    people.append(pa.table({"id": pa.array([4], pa.int64())}))
    assert ids(frame.alias("a").join(frame.alias("b"), "id").select("id")) == [1, 2, 3]
    assert ice.table("db.people").count() == 4


def test_a_plan_without_files_is_an_empty_frame_of_the_same_columns(
    ice: Any, catalog: icefield.Catalog, people: icefield.Table
) -> None:
    frame = ice.table("db.people", where="id > 99")
    assert frame.schema == ice.table("db.people").schema
    assert frame.count() == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"identifier": "db.nosuch"}, NoSuchTable),
        ({"columns": ["nosuch"]}, InvalidArgument),
        ({"columns": []}, InvalidArgument),
        ({"columns": "id"}, InvalidArgument),
        ({"where": "nosuch = 1"}, InvalidExpression),
        ({"where": "id = "}, InvalidExpression),
        ({"snapshot_id": 1}, NoSuchSnapshot),
        ({"ref": "main", "as_of": 1}, InvalidArgument),
    ],
    ids=str,
)
def test_what_is_not_there_is_stated_when_the_frame_is_made(
    ice: Any, people: icefield.Table, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        ice.table(**{"identifier": "db.people", **options})


@pytest.mark.slow
def test_files_of_every_shape_that_a_table_had_are_read_in_its_present_one(ice: Any, catalog: icefield.Catalog) -> None:
    schema = pa.schema(
        [("id", pa.int32()), ("kind", pa.string()), ("gone", pa.string()), ("s", pa.struct([("x", pa.float32())]))]
    )
    table = catalog.create_table("db.shapes", schema, partition_spec=["kind"])
    row = {"id": 1, "kind": "a", "gone": "g", "s": {"x": 0.5}}
    table.append(pa.Table.from_pylist([row], schema=schema))
    with table.update_schema() as update:
        update.rename_column("id", "number")
        update.update_column("id", field_type="long")
        update.delete_column("gone")
        update.rename_column("s.x", "y")
        update.update_column("s.x", field_type="double")
        update.add_column("gone", "int")
        update.add_column("id", "string")
        update.move_first("s")
    with table.update_spec() as update:
        update.remove_field("kind")
        update.add_field("number", "bucket[4]", "bucketed")
    new = {"s": {"y": 1.5}, "number": 2**40, "kind": "b", "gone": 7, "id": "text"}
    table.append(pa.Table.from_pylist([new], schema=table.scan().to_arrow().schema))
    rows = ice.table("db.shapes").orderBy("number").toArrow()
    assert rows.column_names == ["s", "number", "kind", "gone", "id"]
    assert rows.to_pylist() == [{"s": {"y": 0.5}, "number": 1, "kind": "a", "gone": None, "id": None}, new]
    assert ice.table("db.shapes", where="gone is null and number < 5", columns=["kind"]).collect() == [("a",)]


def test_a_large_plan_travels_as_a_broadcast_variable(
    ice: Any, people: icefield.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icefield_spark.executors._BROADCAST_FROM_BYTES", 1)
    people.append(pa.table({"id": pa.array([4], pa.int64())}))
    assert ids(ice.table("db.people")) == [1, 2, 3, 4]


def test_nothing_that_spark_shows_of_a_frame_holds_a_property_of_the_catalog(
    ice: Any, people: icefield.Table, properties: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    secret = properties["s3.secret-access-key"]
    shown = repr(ice) + str(ice.catalog)
    for road in ("spark", "arrow"):
        frame = ice.table("db.people", road=road).filter("id > 1")
        frame.explain(True)
        frame.explain("formatted")
        shown += capsys.readouterr().out + frame._jdf.queryExecution().toString() + repr(frame)
    assert "FileScan parquet icefield db.people" in shown
    assert "BatchScan db.people" in shown
    assert "FileScan parquet" in shown
    assert secret not in shown


# -- creating and writing -----------------------------------------------------------------------------------------


def test_a_table_is_created_with_the_columns_of_a_frame(ice: Any) -> None:
    frame = ice.spark.range(1).selectExpr(
        "id", "cast(id as smallint) as small", "array(struct(id as x)) as l", "date'2024-01-01' as day"
    )
    table = ice.create_table("db.made", frame, partition_spec=[("day", "month")], properties={"a": "b"})
    assert [str(field) for field in table.schema().fields] == [
        "1: id: optional long",
        "2: small: optional int",
        "3: l: optional list<struct<6: x: optional long>>",
        "4: day: optional date",
    ]
    said = ice.create_table("db.said", frame, required=True), ice.create_table("db.read", frame.schema)
    assert [table.schema().find_field("l.x").required for table in said] == [True, True]
    assert [field.name for field in table.spec().fields] == ["day_month"]
    assert table.properties["a"] == "b"


@pytest.mark.slow
def test_rows_are_appended_by_the_names_of_their_columns(
    ice: Any, people: icefield.Table, data_files: Found, committed: Committed
) -> None:
    frame = ice.spark.range(4, 8, 1, 2).selectExpr("struct(cast(id as int) as zip, 'Rome' as city) as home", "id")
    ice.append(frame, "db.people", snapshot_properties={"job": "nightly"})
    table = ice.catalog.load_table("db.people")
    rows = table.scan("id >= 4").to_arrow().sort_by("id").to_pylist()
    assert rows[0] == {"id": 4, "name": None, "home": {"city": "Rome", "zip": 4}}
    assert [row["id"] for row in rows] == [4, 5, 6, 7]
    summary = table.current_snapshot().summary
    assert (summary["engine-name"], summary["job"], summary["added-data-files"]) == ("spark", "nightly", "2")
    assert data_files() == committed("db.people")


def test_rows_go_to_the_partitions_that_the_tables_spec_says(ice: Any, catalog: icefield.Catalog) -> None:
    frame = ice.spark.range(0, 100, 1, 2).selectExpr("id", "date_add(date'2024-01-30', cast(id % 4 as int)) as day")
    ice.create_table("db.parted", frame, partition_spec=[("day", "month"), "bucket[2](id)"])
    ice.append(frame, "db.parted")
    table = ice.catalog.load_table("db.parted")
    partitions = table.inspect.partitions().to_pylist()
    assert len(partitions) == 4
    assert sum(row["record_count"] for row in partitions) == 100
    assert ice.table("db.parted", where="day >= '2024-02-01' and id < 10").count() == 4


@pytest.mark.slow
def test_rows_are_replaced_by_a_filter_or_all_together_and_may_be_computed_from_the_table_itself(
    ice: Any, people: icefield.Table
) -> None:
    frame = ice.table("db.people", where="id >= 2").withColumn("id", f.col("id") * 10)
    ice.overwrite(frame, "db.people", "id >= 2")
    table = ice.catalog.load_table("db.people")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 20, 30]
    ice.overwrite(ice.table("db.people").filter("id = 20"), "db.people")
    table = ice.catalog.load_table("db.people")
    assert table.scan().to_arrow()["id"].to_pylist() == [20]
    assert len(table.snapshots()) == 3


def test_a_branch_is_written_to_and_read(ice: Any, people: icefield.Table) -> None:
    people.manage_snapshots().create_branch(people.current_snapshot().snapshot_id, "audit").commit()
    ice.append(ice.spark.range(4, 5), "db.people", branch="audit")
    assert ids(ice.table("db.people", ref="audit")) == [1, 2, 3, 4]
    assert people.refresh().scan().count() == 3
    with pytest.raises(NoSuchSnapshot, match="was 'audit' meant"):
        ice.append(ice.spark.range(4, 5), "db.people", branch="audti")


def test_rows_are_staged_and_published(ice: Any, people: icefield.Table) -> None:
    ice.append(ice.spark.range(4, 5), "db.people", branch=None, snapshot_properties={"wap.id": "w"})
    assert ids(ice.table("db.people")) == [1, 2, 3]
    people.refresh().manage_snapshots().publish_changes("w").commit()
    ice.overwrite(ice.spark.range(7, 8), "db.people", branch=None)
    assert ids(ice.table("db.people")) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("identifier", "column", "where", "error"),
    [
        ("db.nosuch", "id", None, NoSuchTable),
        ("db.people", "nosuch", None, InvalidArgument),
        ("db.people", "id", "nosuch = 1", InvalidExpression),
    ],
)
def test_a_write_that_cannot_come_to_anything_fails_before_the_frame_is_computed(
    ice: Any, people: icefield.Table, identifier: str, column: str, where: str | None, error: type[Exception]
) -> None:
    frame = ice.spark.range(1).select(f.raise_error(f.lit("computed")).cast("long").alias(column))
    with pytest.raises(error):
        ice.overwrite(frame, identifier, where) if where else ice.append(frame, identifier)


@pytest.mark.spec("TYP-19")
def test_rows_that_do_not_fit_are_an_error_of_icefield_and_nothing_is_left(
    ice: Any, people: icefield.Table, data_files: Found
) -> None:
    before = data_files()
    # One task: what a sibling leaves that is at work when the job fails is an orphan, and the next test's is through.
    frame = ice.spark.range(0, 4, 1, 1).selectExpr("if(id = 3, null, id) as id")
    with pytest.raises(InvalidArgument, match="column 'id' cannot be written: it is required and holds a null"):
        ice.append(frame, "db.people")
    assert people.refresh().scan().count() == 3
    assert data_files() == before


@pytest.mark.slow
def test_when_a_task_fails_the_files_of_its_siblings_go_too(
    ice: Any, people: icefield.Table, data_files: Found, half_failing: Any
) -> None:
    before = data_files()
    with pytest.raises(PySparkException, match="planted"):
        ice.append(half_failing, "db.people")
    assert people.refresh().scan().count() == 3
    assert data_files() == before


@pytest.mark.slow
def test_what_an_attempt_wrote_whose_worker_was_killed_is_not_committed_and_not_left(
    ice: Any, people: icefield.Table, data_files: Found, committed: Committed, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icefield_spark.writing import ChunkWriter

    class DyingWriter(ChunkWriter):
        """Its worker is killed after the first attempt of a task has written everything."""

        def write(self, batches: Iterator[pa.RecordBatch]) -> Any:
            message = super().write(batches)
            if message.files and not message.is_contested:
                os.kill(os.getpid(), signal.SIGKILL)
            return message

    before = data_files()
    monkeypatch.setattr("icefield_spark.roads.write_job.ChunkWriter", DyingWriter)
    ice.append(ice.spark.range(4, 6, 1, 1), "db.people")
    assert ids(ice.table("db.people")) == [1, 2, 3, 4, 5]
    assert len(data_files() - before) == 1
    assert data_files() == committed("db.people")


@pytest.mark.slow
def test_a_commit_that_fails_leaves_no_file(
    ice: Any, people: icefield.Table, catalog: icefield.Catalog, data_files: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icefield_spark import session

    def dropped_meanwhile(transaction: Any, outcome: Any, *rest: Any, **options: Any) -> None:
        assert outcome.files
        catalog.drop_table("db.people")
        stage(transaction, outcome, *rest, **options)

    before, stage = data_files(), session.stage
    monkeypatch.setattr(session, "stage", dropped_meanwhile)
    with pytest.raises(NoSuchTable):
        ice.append(ice.spark.range(4, 5), "db.people")
    assert data_files() == before


@pytest.mark.slow
@pytest.mark.parametrize("road", ["spark", "arrow"])
def test_days_before_the_gregorian_calendar_are_written_and_read_as_they_are(
    ice: Any, catalog: icefield.Catalog, road: str
) -> None:
    """Spark and Iceberg both count days in the proleptic Gregorian calendar; nothing on the way rebases them."""
    days = ["0001-01-01", "1500-03-01", "1582-10-04", "1582-10-15", "1969-12-31"]
    listed = ", ".join(
        f"(DATE '{day}', TIMESTAMP_NTZ '{day} 01:02:03.000004', TIMESTAMP '{day} 01:02:03.000004Z')" for day in days
    )
    frame = ice.spark.sql(f"SELECT * FROM VALUES {listed} AS v(day, wall, instant)")
    ice.create_table_as(frame, "db.old", partition_spec=["year(day)"], road=road)
    found = catalog.load_table("db.old").scan().to_arrow().sort_by("day")
    assert [str(each) for each in found["day"].to_pylist()] == days
    for name in ("wall", "instant"):
        assert [each.isoformat()[:26] for each in found[name].to_pylist()] == [f"{day}T01:02:03.000004" for day in days]
    again = ice.table("db.old")
    assert again.exceptAll(frame).count() == frame.exceptAll(again).count() == 0

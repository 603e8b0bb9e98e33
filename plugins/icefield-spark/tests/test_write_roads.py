"""Rows written by Spark's own writer are the table's as they are when the kernel's writers write them."""

from __future__ import annotations

import math
import os
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import icefield
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icefield.errors import InvalidArgument, StorageError, UnsupportedFeature, ValidationFailed
from icefield.schema import Schema
from icefield.types import BinaryType, DoubleType, IntegerType, LongType, NestedField, StringType
from icefield_import import FileDescriber
from icefield_spark.roads import write_job
from icefield_spark.roads.write_fit import options_of
from icefield_spark.settings import at_least
from pyspark.sql import functions as f

pytestmark = pytest.mark.spark

ROWS = (
    "id",
    "id % 3 = 0 AS even",
    "CAST(id % 50 AS int) AS small",
    "CAST(CAST(id + 1 AS float) / 7 AS float) AS single",
    "if(id = 3, CAST('NaN' AS double), if(id = 4, -0.0D, if(id = 5, 0.0D, id - 9.5D))) AS real",
    "CAST(id % 12 - 6 AS decimal(20, 3)) AS price",
    "date_add(DATE '1969-12-20', CAST(id % 30 AS int)) AS day",
    "TIMESTAMP_NTZ '2024-03-10 01:00:00' + make_dt_interval(0, id % 5) AS wall",
    "timestamp_micros((id % 5) * 3600000000 + 1730606400000000) AS at",  # over the end of summer time
    "if(id % 7 = 0, NULL, if(id % 7 = 1, '', repeat('long/=%', CAST(id % 7 AS int) * 6))) AS name",
    "if(id % 4 = 0, NULL, unhex(hex(id % 4))) AS raw",
)
"""Nulls, both zeros, a NaN, an empty string, and strings that are longer than bounds and not fit for a folder."""

SPECS = {
    "": [],
    "numbers": ["bucket[4](id)", "truncate[10](small)"],
    "times": ["day(at)", "month(day)", "hour(wall)"],
    "instants": ["at", "wall"],
    "strings": ["name", "even"],
    "bytes": ["raw", "truncate[4](name)"],
    "decimals": ["price"],
}


def rows(ice: Any, count: int = 200) -> Any:
    return ice.spark.range(0, count, 1, 3).selectExpr(*ROWS)


def location(table: icefield.Table) -> Path:
    return Path(table.location().removeprefix("file://"))


def left(table: icefield.Table) -> set[str]:
    """The files of data that no snapshot names."""
    stored = {str(path) for path in location(table).joinpath("data").rglob("*") if path.is_file()}
    return stored - {path.removeprefix("file://") for path in table.inspect.all_files()["file_path"].to_pylist()}


def partitions(table: icefield.Table) -> list[tuple[str, int]]:
    found = table.inspect.partitions().to_pylist()
    return sorted((str(each.get("partition")), each["record_count"]) for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_both_roads_give_the_same_rows_in_the_same_partitions(
    ice: Any, catalog: icefield.Catalog, spec: list[str]
) -> None:
    found = [
        ice.create_table_as(rows(ice), f"db.{road}", road=road, partition_spec=spec) for road in ("spark", "arrow")
    ]
    tables = [table.scan().to_arrow().sort_by("id") for table in found]
    assert [str(column) for column in tables[0]] == [str(column) for column in tables[1]]
    assert partitions(found[0]) == partitions(found[1])
    assert left(found[0]) == set()
    frames = [ice.table("db.spark", road=road).toArrow().sort_by("id") for road in ("spark", "arrow")]
    assert str(frames[0].to_pylist()) == str(frames[1].to_pylist())


def stated(table: icefield.Table) -> dict[str, dict[Any, Any]]:
    """What the manifest says of the only file, by field id."""
    (file,) = table.inspect.data_files().to_pylist()
    return {name: dict(found or ()) for name, found in file.items() if name.endswith(("_counts", "_bounds"))}


@pytest.mark.slow
def test_manifests_say_the_same_of_the_files_of_both_roads(ice: Any) -> None:
    frame = rows(ice, 30).where("NOT isnan(real)").repartition(1)
    whole = {"write.metadata.metrics.default": "full"}
    ours, other = (
        stated(ice.create_table_as(frame, f"db.{road}", road=road, properties=whole)) for road in ("spark", "arrow")
    )
    name = ice.catalog.load_table("db.spark").schema().find_field(("name",)).field_id
    # Spark cuts longer strings than manifests keep by default.
    assert ours["lower_bounds"].pop(name) <= other["lower_bounds"].pop(name)
    assert ours["upper_bounds"].pop(name) >= other["upper_bounds"].pop(name)
    assert ours == other


@pytest.mark.slow
def test_a_file_with_nan_has_no_count_of_them_and_no_bounds(ice: Any) -> None:
    """A reader may not take it for free of them, whatever Spark's writer says of its other values."""
    frame = ice.spark.createDataFrame([(1, math.nan), (2, 1.0), (3, -math.inf)], "id long, real double")
    table = ice.create_table_as(frame.repartition(1), "db.t", road="spark")
    found = stated(table)
    assert 2 not in {*found["nan_value_counts"], *found["upper_bounds"]}
    assert table.scan(row_filter="real is nan").to_arrow()["id"].to_pylist() == [1]
    assert sorted(row.id for row in ice.table("db.t").where("real > 5").collect()) == [1]
    assert sorted(row.id for row in ice.table("db.t").where("real < 5").collect()) == [2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hash", "range", "none"])
def test_files_that_are_said_to_be_sorted_are(ice: Any, catalog: icefield.Catalog, mode: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    catalog.create_table("db.t", schema, partition_spec=["bucket[3](id)"], sort_order=["name desc", "id"])
    frame = ice.spark.range(0, 300, 1, 4).selectExpr("id", "concat('n', id % 7) AS name")
    ice.append(frame, "db.t", distribution=mode, road="spark")
    table = ice.catalog.load_table("db.t")
    files = table.inspect.data_files()
    assert set(files["sort_order_id"].to_pylist()) == {table.sort_order().order_id}
    for path in files["file_path"].to_pylist():
        found = pq.read_table(path.removeprefix("file://"), partitioning=None).to_pylist()
        assert [(row["name"], row["id"]) for row in found] == sorted(
            ((row["name"], row["id"]) for row in found), key=lambda pair: ([-ord(c) for c in pair[0]], pair[1])
        )
    assert mode == "none" or len(files) == 3


FAR = (
    "id",
    "CAST(if(id % 2 = 0, -id * 40000000, id * 40000000) AS int) AS small",
    "if(id % 2 = 0, -id, id) * 170000000000000000 AS long",
    "date_add(DATE '0001-01-01', CAST(id * 73001 AS int)) AS day",
    "TIMESTAMP_NTZ '0001-01-01' + make_dt_interval(CAST(id * 73001 AS int), 0, 0, id / 7) AS wall",
    "timestamp_micros(if(id % 2 = 0, -id, id) * 140000000000000001) AS at",
    "concat_ws('', slice(array('\\U0001f600', 'a', '\\u00e9', '\\0', '/'), CAST(id % 5 AS int) + 1, 3)) AS name",
    "unhex(hex(id * 7919)) AS raw",
)
"""Values far from today and from zero, of which Spark's expressions have to be the kernel's transforms."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [
        ["bucket[2](small)", "bucket[2](day)", "bucket[2](wall)", "bucket[2](at)"],
        ["truncate[100000000](small)", "truncate[1](name)"],
        ["truncate[1000000000](long)", "truncate[1](raw)"],
        ["year(day)", "year(at)"],
        ["hour(wall)"],
        ["hour(at)"],
    ],
    ids=str,
)
def test_a_file_holds_rows_of_one_partition_only(ice: Any, spec: list[str]) -> None:
    frame = ice.spark.range(0, 50, 1, 2).selectExpr(*FAR)
    table = ice.create_table_as(frame.union(frame), "db.t", road="spark", partition_spec=spec)
    describer = FileDescriber(table.metadata, table.io)
    files = [task.file for task in table.scan().plan_files()]
    assert len(files) > 1
    for file in files:
        assert describer.describe(file.file_path).partition == file.partition


@pytest.mark.slow
def test_a_null_in_a_required_column_is_refused_and_leaves_nothing(ice: Any, catalog: icefield.Catalog) -> None:
    columns = {"id": LongType(), "name": StringType(), "raw": BinaryType(), "small": IntegerType()}
    schema = Schema(*(NestedField(n, name, kind, required=True) for n, (name, kind) in enumerate(columns.items(), 1)))
    table = catalog.create_table("db.t", schema)
    good = ice.spark.range(100).selectExpr(
        "id", "if(id < 0, NULL, 'a') name", "if(id < 0, NULL, X'00') raw", "if(id < 0, NULL, 1) small"
    )
    for nullable, road in [("name", "spark"), ("raw", "spark"), ("small", "spark"), ("raw", "arrow")]:
        with pytest.raises(InvalidArgument, match=f"'{nullable}' cannot be written: it is required and holds a null"):
            ice.append(good.withColumn(nullable, f.when(f.col("id") != 7, f.col(nullable))), "db.t", road=road)
    assert table.refresh().current_snapshot() is None
    assert not any(location(table).joinpath("data").rglob("*"))
    ice.append(good, "db.t", road="spark")
    assert {column.null_count for column in table.refresh().scan().to_arrow()} == {0}
    (path, *_) = table.inspect.data_files()["file_path"].to_pylist()
    assert not any(field.nullable for field in pq.read_schema(path.removeprefix("file://")))


@pytest.mark.slow
def test_files_are_not_said_to_be_sorted_where_a_task_may_have_sorted_their_rows_anew(
    ice: Any, catalog: icefield.Catalog
) -> None:
    """The setting is the session's: another write raises it for a while."""
    schema = pa.schema([("id", pa.int64())])
    catalog.create_table("db.t", schema, partition_spec=["bucket[3](id)"], sort_order=["id"])
    frame = ice.spark.range(10)
    with at_least(ice.spark, "spark.sql.maxConcurrentOutputFileWriters", 5, 0):
        with at_least(ice.spark, "spark.sql.maxConcurrentOutputFileWriters", 3, 0):
            assert ice.spark.conf.get("spark.sql.maxConcurrentOutputFileWriters") == "5"
        ice.append(frame, "db.t", road="spark")
        table = ice.catalog.load_table("db.t")
    assert set(table.inspect.data_files()["sort_order_id"].to_pylist()) <= {None, 0}
    ice.append(frame, "db.t", road="spark")
    table = ice.catalog.load_table("db.t")
    assert table.sort_order().order_id in table.inspect.data_files()["sort_order_id"].to_pylist()
    assert ice.spark.conf.get("spark.sql.maxConcurrentOutputFileWriters", None) is None


@pytest.mark.slow
def test_columns_that_a_frame_lacks_have_their_default(ice: Any, catalog: icefield.Catalog) -> None:
    schema = Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "name", StringType(), initial_default="old", write_default="new"),
        NestedField(3, "real", DoubleType()),
    )
    catalog.create_table("db.t", schema, properties={"format-version": "3"}, partition_spec=["name"])
    frame = ice.spark.range(3).selectExpr("CAST(id AS smallint) AS ID").withColumnRenamed("ID", "iD")
    ice.append(frame, "db.t", road="spark")
    table = ice.catalog.load_table("db.t")
    found = table.scan().to_arrow()
    assert set(found["name"].to_pylist()) == {"new"}
    assert found["real"].null_count == 3
    assert [each[0] for each in partitions(table)] == ["{'name': 'new'}"]


@pytest.mark.slow
def test_a_frame_without_rows_adds_no_file(ice: Any) -> None:
    table = ice.create_table_as(rows(ice).where("id < 0"), "db.t", road="spark")
    assert len(table.inspect.data_files()) == 0
    assert left(table) == set()


@pytest.mark.slow
def test_a_job_that_fails_leaves_no_file_and_no_folder(ice: Any, catalog: icefield.Catalog) -> None:
    table = ice.create_table(
        "db.t", ice.spark.range(1).selectExpr("id", "id AS other").schema, partition_spec=["bucket[2](id)"]
    )
    fails = "if(id = 900, raise_error('upstream'), id) AS other"
    for road in ("spark", "arrow"):
        with pytest.raises(Exception, match="upstream"):
            ice.append(ice.spark.range(0, 1000, 1, 4).selectExpr("id", fails), "db.t", road=road)
        assert left(table) == set()
    assert not any(location(table).joinpath("data").glob("job-*"))
    assert table.refresh().current_snapshot() is None


@pytest.mark.slow
def test_files_of_a_commit_that_is_refused_are_deleted(ice: Any, catalog: icefield.Catalog) -> None:
    table = ice.create_table_as(rows(ice).limit(5), "db.t")
    write = ice._write

    def meanwhile(*arguments: Any) -> Any:
        outcome = write(*arguments)
        catalog.drop_table("db.t")
        return outcome

    ice._write = meanwhile
    with pytest.raises((ValidationFailed, icefield.errors.NoSuchTable)):
        ice.append(rows(ice), "db.t", road="spark")
    assert left(table) == set()


@pytest.mark.slow
def test_a_file_holds_about_as_many_rows_as_its_size_allows(ice: Any, catalog: icefield.Catalog) -> None:
    """Spark counts rows: how large they are is known of the files that are there."""
    frame = ice.spark.range(0, 40_000, 1, 1).selectExpr("id", "randn(1) AS a", "repeat(uuid(), 100) AS s")
    target = {"write.target-file-size-bytes": str(32 << 20), "write.parquet.compression-codec": "uncompressed"}
    table = ice.create_table_as(frame.limit(400), "db.t", properties=target)
    before = len(table.inspect.data_files())
    ice.append(frame, "db.t", road="spark")
    table = ice.catalog.load_table("db.t")
    sizes = table.inspect.data_files()["file_size_in_bytes"].to_pylist()
    assert len(sizes) - before > 3
    assert max(sizes) < 40 << 20


@pytest.mark.parametrize(
    ("totals", "rows"),
    [
        (None, (512 << 20) // 28),
        (
            {"total-files-size": str(100 << 20), "total-data-files": "4", "total-records": str(1 << 20)},
            (512 << 20) // 100,
        ),
        ({"total-files-size": "4000", "total-data-files": "2", "total-records": "10"}, (512 << 20) // 28),
        ({"total-files-size": str(50 << 30), "total-data-files": "4", "total-records": "1"}, 100),
        ({"total-files-size": str(5 << 20), "total-data-files": "1", "total-records": "9" * 18}, 512 << 20),
        ({"total-files-size": "9" * 5000, "total-data-files": "-1", "total-records": "many"}, (512 << 20) // 28),
    ],
)
def test_how_many_rows_a_file_may_have_follows_from_what_the_table_is_like(
    catalog: icefield.Catalog, totals: dict[str, str] | None, rows: int
) -> None:
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    snapshot = None if totals is None else SimpleNamespace(summary=totals)
    metadata: Any = SimpleNamespace(current_snapshot=lambda: snapshot, schema=table.schema)
    assert options_of(metadata, table.write_context(), is_local=True)["maxRecordsPerFile"] == str(rows)


UNFIT = {
    "Spark Connect": None,
    "file_format": {"properties": {"write.format.default": "orc"}},
    "'tags' is list": {"schema": "id long, tags array<int>"},
    "'inside' is struct": {"schema": "id long, inside struct<a: int>"},
    "'a.b' is not a plain name": {"schema": "id long, `a.b` int"},
    "object-storage": {"properties": {"write.object-storage.enabled": "true"}},
    "cut by their bytes": {"properties": {"write.target-file-size-bytes": "1000000"}},
    "bloom-filter": {"properties": {"write.parquet.bloom-filter-enabled.column.id": "true"}},
    "page-version": {"properties": {"write.parquet.page-version": "v2"}},
    "compression-codec": {"properties": {"write.parquet.compression-codec": "brotli"}},
    "compression-level": {
        "properties": {"write.parquet.compression-codec": "gzip", "write.parquet.compression-level": "1"}
    },
    "page-size-bytes of 1": {"properties": {"write.parquet.page-size-bytes": "1"}},
    "dict-size-bytes of 9": {"properties": {"write.parquet.dict-size-bytes": "9999999999"}},
    "page-row-limit of 9": {"properties": {"write.parquet.page-row-limit": "9999999999"}},
    "two zeros": {"schema": "id long, real double", "partition_spec": ["real"]},
}


@pytest.mark.slow
@pytest.mark.parametrize("reason", [each for each in UNFIT if UNFIT[each]])
def test_what_sparks_writer_cannot_do_goes_in_arrow(ice: Any, reason: str) -> None:
    options = dict(UNFIT[reason] or {})
    kinds = options.pop("schema", "id long")
    frame = ice.spark.createDataFrame([], kinds)
    values = {"tags": [1], "inside": (2,), "a.b": 3, "real": 1.0}
    frame = ice.spark.createDataFrame([tuple(values.get(name, 5) for name in frame.columns)], frame.schema)
    wanted = "files are orc" if reason == "file_format" else reason
    with pytest.raises(UnsupportedFeature, match=f"Spark's own writer does not serve: .*{wanted}"):
        ice.create_table_as(frame, "db.t", road="spark", **options)
    table = ice.create_table_as(frame, "db.t", **options)
    assert table.scan().to_arrow()["id"].to_pylist() == [5]
    assert not any(location(table).joinpath("data").rglob("job-*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.parquet.fieldId.write.enabled", "false"),
        ("spark.sql.parquet.writeLegacyFormat", "true"),
        ("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY"),
        ("spark.sql.sources.commitProtocolClass", "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol"),
        ("spark.sql.optimizer.plannedWrite.enabled", "false"),
        ("parquet.crypto.factory.class", "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"),
    ],
)
def test_a_session_that_writes_files_otherwise_has_them_written_in_arrow(ice: Any, name: str, value: str) -> None:
    """The session is that of the frame, which need not be the one that was attached."""
    other = ice.spark.newSession()
    other.conf.set(name, value)
    frame = other.range(3).selectExpr("id", "DATE '1500-01-01' AS day")
    with pytest.raises(UnsupportedFeature, match=f"{name} is {value}"):
        ice.create_table_as(frame, "db.t", road="spark")
    assert ice.create_table_as(frame, "db.t").scan().to_arrow()["day"].to_pylist() == [date(1500, 1, 1)] * 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mapreduce.output.basename", "_hidden"),
        ("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false"),
        ("parquet.column.statistics.enabled", "false"),
        ("parquet.writer.version", "v2"),
        ("spark.sql.parquet.outputTimestampType", "INT96"),
        ("spark.sql.files.maxRecordsPerFile", "1"),
    ],
)
def test_a_setting_of_a_session_changes_no_file(ice: Any, name: str, value: str) -> None:
    other = ice.spark.newSession()
    other.conf.set(name, value)
    frame = other.range(0, 3, 1, 1).selectExpr("id", "timestamp_micros(id) AS at")
    table = ice.create_table_as(frame, "db.t")
    assert len(table.scan().to_arrow()) == 3
    assert set(stated(table)["upper_bounds"]) == {1, 2}
    (path,) = table.inspect.data_files()["file_path"].to_pylist()
    footer = pq.ParquetFile(path.removeprefix("file://"))
    assert footer.schema_arrow.field("at").type == pa.timestamp("us", "UTC")
    assert "DELTA_BINARY_PACKED" not in footer.metadata.row_group(0).column(0).encodings


@pytest.mark.slow
def test_strings_that_are_not_utf_8_are_refused(ice: Any, catalog: icefield.Catalog) -> None:
    """Spark holds any bytes as a string, and of a file with such ones nobody else reads any row."""
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType(), required=True))
    table = catalog.create_table("db.t", schema, partition_spec=["truncate[1](name)"])
    frame = ice.spark.range(9).selectExpr("id", "if(id = 7, CAST(X'61FF' AS string), '\U0001f600\ufffd') AS name")
    for road in ("spark", "arrow"):
        with pytest.raises(InvalidArgument, match="column 'name' cannot be written: a value is none of string"):
            ice.append(frame, "db.t", road=road)
        assert left(table) == set()
    ice.append(frame.where("id < 7"), "db.t", road="spark")
    assert len(table.refresh().scan().to_arrow()) == 7


@pytest.mark.slow
@pytest.mark.parametrize("road", ["spark", "arrow"])
def test_strings_with_a_collation_are_sorted_by_their_bytes(ice: Any, road: str) -> None:
    frame = ice.spark.sql("SELECT name COLLATE UTF8_LCASE AS name FROM VALUES ('b'), ('A'), ('a'), ('B') AS v(name)")
    table = ice.create_table_as(frame.coalesce(1), "db.t", road=road, sort_order=["name"], distribution="none")
    (file,) = table.inspect.data_files().to_pylist()
    assert file["sort_order_id"] == table.sort_order().order_id
    found = pq.read_table(file["file_path"].removeprefix("file://"), partitioning=None)
    assert found["name"].to_pylist() == ["A", "B", "a", "b"]


@pytest.mark.slow
@pytest.mark.parametrize("road", ["spark", "arrow"])
def test_a_partition_field_whose_column_is_gone_is_null(ice: Any, catalog: icefield.Catalog, road: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("gone", pa.string())])
    table = catalog.create_table(
        "db.t", schema, partition_spec=["gone", "bucket[2](id)"], properties={"format-version": "1"}
    )
    with table.update_spec() as spec:
        spec.remove_field("gone")
    with table.refresh().update_schema() as columns:
        columns.delete_column("gone")
    ice.append(ice.spark.range(6), "db.t", road=road)
    assert partitions(table.refresh()) == [
        ("{'gone': None, 'id_bucket_2': 0}", 4),
        ("{'gone': None, 'id_bucket_2': 1}", 2),
    ]


@pytest.mark.slow
def test_files_that_spark_wrote_and_that_are_not_there_are_an_error(ice: Any, monkeypatch: Any) -> None:
    """As on the local disks of other machines, from where Spark's committer moves nothing and says nothing."""
    whole = write_job._Job._published
    monkeypatch.setattr(write_job._Job, "_published", lambda job: whole(job)[1:])
    table = ice.create_table("db.t", ice.spark.range(1).schema)
    with pytest.raises(StorageError, match=r"have written 60 rows to .*, and the files there hold 40"):
        ice.append(ice.spark.range(0, 60, 1, 3), "db.t")
    assert table.refresh().current_snapshot() is None
    assert left(table) == set()


@pytest.mark.slow
def test_a_location_that_is_mapped_is_written_where_it_leads(ice: Any, tmp_path: Path, properties: Any) -> None:
    from icefield_spark import attach

    mapped = {**properties, "location.map.hdfs://gone": f"file://{tmp_path}/there", "warehouse": "hdfs://gone/w"}
    with icefield.load_catalog("mapped", **mapped) as catalog:
        catalog.create_namespace("there")
        other = attach(ice.spark, catalog)
        table = other.create_table_as(rows(ice), "there.t", road="spark")
        paths = table.inspect.data_files()["file_path"].to_pylist()
        assert all(path.startswith("hdfs://gone/w/") for path in paths)
        assert len(table.scan().to_arrow()) == 200
    assert any(os.walk(tmp_path / "there"))


@pytest.mark.slow
def test_an_overwrite_and_a_statement_go_by_sparks_writer(ice: Any, catalog: icefield.Catalog) -> None:
    ice.create_table_as(rows(ice).select("id", "small", "price"), "db.t", partition_spec=["small"])
    ice.overwrite_partitions(rows(ice, 60).select("id", "small", "price"), "db.t", road="spark")
    ice.sql("INSERT INTO db.t SELECT 1000, 7, 1.5")
    ice.overwrite(rows(ice, 10).select("id", "small", "price"), "db.t", "small = 3", road="spark")
    table = ice.catalog.load_table("db.t")
    files = table.inspect.data_files()["file_path"].to_pylist()
    assert all("/data/job-" in path for path in files if "replaced" not in path)
    assert table.scan(row_filter="id = 1000").to_arrow()["price"].to_pylist() == [Decimal("1.500")]

"""Versions of tables as others read them: snapshots, branches, merged manifests, metadata files, format version 3."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from icefield.manifest import read_manifest_list
from icefield.schema import Schema
from icefield.types import NestedField
from peer_tables import EVERY_TYPE, every_type_rows, rows_of, table_with_history
from peers import altered, as_chdb_reads, chdb_rows, duckdb_rows, pyiceberg_catalog, sorted_rows

pytest.importorskip("pyiceberg")


@pytest.mark.parametrize("format_version", [1, 2, 3])
@pytest.mark.spec("VER-13", "SCAN-60", "SCAN-63", "SCH-30", "SNAP-13", "META-16")
def test_each_snapshot_is_read_by_others_under_its_own_schema(catalog, tmp_path, duck, click, format_version):
    table = table_with_history(catalog, "db.history", format_version)
    with pyiceberg_catalog(tmp_path) as peer:
        theirs = peer.load_table("db.history")
        for snapshot in table.snapshots():
            number = snapshot.snapshot_id
            scan = table.scan(snapshot_id=number)
            rows, schema = scan.to_arrow(), scan.schema
            ours = sorted_rows(rows, schema)
            assert sorted_rows(theirs.scan(snapshot_id=number).to_arrow(), schema) == ours
            assert sorted_rows(duckdb_rows(duck, table, snapshot_from_id=number), schema) == ours
            seen = chdb_rows(click, table, iceberg_snapshot_id=number)
            assert sorted_rows(seen, schema) == sorted_rows(altered(rows, schema, as_chdb_reads), schema)
        assert [s.snapshot_id for s in theirs.snapshots()] == [s.snapshot_id for s in table.snapshots()]
        assert [e.snapshot_id for e in theirs.history()] == [e.snapshot_id for e in table.history()]


@pytest.mark.spec("VER-13", "COMMIT-25", "ML-09", "SNAP-10", "SCAN-43")
def test_many_snapshots_with_merged_manifests_are_read_by_others(catalog, tmp_path, duck, click):
    properties = {"commit.manifest.min-count-to-merge": "4"}
    table = catalog.create_table(
        "db.many", pa.schema([("n", pa.int64()), ("k", pa.string())]), partition_spec=["k"], properties=properties
    )
    for number in range(12):
        table.append(pa.table({"n": [number, -number], "k": ["even" if number % 2 == 0 else "odd", None]}))
    table.delete("k = 'odd'")
    manifests = read_manifest_list(table.io, table.current_snapshot(), table.metadata).manifests
    assert len(manifests) < 8
    ours = sorted_rows(table.scan().to_arrow(), table.schema())
    assert len(ours) == 18
    assert sorted_rows(duckdb_rows(duck, table), table.schema()) == ours
    assert sorted_rows(chdb_rows(click, table), table.schema()) == ours
    with pyiceberg_catalog(tmp_path) as peer:
        theirs = peer.load_table("db.many")
        assert sorted_rows(theirs.scan().to_arrow(), table.schema()) == ours
        assert sum(task.file.record_count for task in theirs.scan().plan_files()) == 18
        counts = theirs.inspect.manifests().column("existing_data_files_count").to_pylist()
        assert counts.count(0) < len(counts)  # merged ones hold files of earlier snapshots


@pytest.mark.spec("VER-13", "REF-01", "REF-02", "SCAN-62", "COMMIT-29")
def test_branches_and_tags_are_read_by_others(catalog, tmp_path, duck):
    table = catalog.create_table("db.refs", pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": [1]}))
    first = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(first, "v1").create_branch(first, "audit").commit()
    table.append(pa.table({"n": [2]}))
    table.append(pa.table({"n": [3]}), branch="audit")
    with pyiceberg_catalog(tmp_path) as peer:
        theirs = peer.load_table("db.refs")
        for name, expected in (("v1", [1]), ("audit", [1, 3]), ("main", [1, 2])):
            found = theirs.scan(snapshot_id=theirs.snapshot_by_name(name).snapshot_id).to_arrow()["n"].to_pylist()
            assert sorted(found) == expected == sorted(table.scan(ref=name).to_arrow()["n"].to_pylist())
    assert sorted(duckdb_rows(duck, table)["n"].to_pylist()) == [1, 2]


@pytest.mark.spec("VER-13", "META-36", "META-34")
def test_compressed_metadata_is_read_by_others(catalog, tmp_path, duck, click):
    table = catalog.create_table("db.gz", EVERY_TYPE, properties={"write.metadata.compression-codec": "gzip"})
    table.append(every_type_rows())
    assert table.metadata_location.endswith(".gz.metadata.json")
    assert duckdb_rows(duck, table).num_rows == chdb_rows(click, table).num_rows == 4
    with pyiceberg_catalog(tmp_path) as peer:
        assert peer.load_table("db.gz").scan().to_arrow().num_rows == 4


@pytest.mark.parametrize("format_version", [1, 2])
@pytest.mark.spec("VER-13", "TYP-29", "SCAN-43")
def test_avro_data_files_are_read_by_clickhouse(catalog, click, format_version):
    table = table_with_history(catalog, "db.avro", format_version, **{"write.format.default": "avro"})
    ours = sorted_rows(altered(table.scan().to_arrow(), table.schema(), as_chdb_reads), table.schema())
    assert sorted_rows(chdb_rows(click, table), table.schema()) == ours


@pytest.mark.spec("VER-13", "TYP-29")
def test_avro_data_files_of_every_type_are_read_by_clickhouse(catalog, click):
    table = catalog.create_table("db.avro", EVERY_TYPE, properties={"write.format.default": "avro"})
    table.append(every_type_rows())
    # ClickHouse reads no UUID of 16 bytes from an Avro file, and reads times as numbers and fixed values as text.
    names = [field.name for field in EVERY_TYPE.fields if field.name not in ("c_time", "c_uuid", "c_fixed")]
    schema = table.schema().select(*names)
    ours = altered(table.scan(selected_fields=tuple(names)).to_arrow(), schema, as_chdb_reads)
    assert sorted_rows(chdb_rows(click, table, names), schema) == sorted_rows(ours, schema)


@pytest.mark.parametrize("format_version", [1, 2])
@pytest.mark.spec("VER-13", "TYP-29", "SCAN-43", "ORC-13")
def test_orc_data_files_are_read_by_clickhouse(catalog, click, format_version):
    table = table_with_history(catalog, "db.orc", format_version, **{"write.format.default": "orc"})
    ours = sorted_rows(altered(table.scan().to_arrow(), table.schema(), as_chdb_reads), table.schema())
    assert sorted_rows(chdb_rows(click, table), table.schema()) == ours


@pytest.mark.spec("VER-13", "TYP-29", "ORC-01", "ORC-04", "ORC-05", "ORC-07")
def test_orc_data_files_of_every_type_are_read_by_clickhouse(catalog, click):
    table = catalog.create_table("db.orc", EVERY_TYPE, properties={"write.format.default": "orc"})
    table.append(every_type_rows())
    epoch = dt.datetime(1970, 1, 1)
    shifts = (-1, -999, -1000, -500_000, -999_999, -1_000_001, -1_500_000, -2_000_001)
    old = ({"c_int": shift, "c_timestamp": epoch + dt.timedelta(microseconds=shift)} for shift in shifts)
    table.append(rows_of(table, *old))
    # ClickHouse reads times of an ORC file as numbers, and UUIDs as bytes.
    names = [field.name for field in EVERY_TYPE.fields if field.name not in ("c_time", "c_uuid")]
    schema = table.schema().select(*names)
    ours = altered(table.scan(selected_fields=tuple(names)).to_arrow(), schema, as_chdb_reads)
    assert sorted_rows(chdb_rows(click, table, names), schema) == sorted_rows(ours, schema)


@pytest.mark.spec("VER-13", "VER-09", "VER-10")
def test_defaults_of_version_3_are_filled_in_by_others(catalog, tmp_path, duck):
    schema = Schema(NestedField(1, "id", "int", required=True))
    table = catalog.create_table("db.defaults", schema, properties={"format-version": "3"})
    table.append(rows_of(table, {"id": 1}, {"id": 2}))
    with table.update_schema() as update:
        update.add_column("text", "string", default_value="é")
        update.add_column("number", "long", required=True, default_value=7)
        update.add_column("price", "decimal(9,2)", default_value=Decimal("1.50"))
        update.add_column("day", "date", default_value=dt.date(2020, 1, 1))
    table.append(rows_of(table, {"id": 3, "number": 5}))
    ours = sorted_rows(table.scan().to_arrow(), table.schema())
    assert '{"id":1,"text":"é","number":7,"price":"1.50","day":"2020-01-01"}' in ours
    assert '{"id":3,"text":null,"number":5,"price":null,"day":null}' in ours
    assert sorted_rows(duckdb_rows(duck, table), table.schema()) == ours
    with pyiceberg_catalog(tmp_path) as peer:
        assert sorted_rows(peer.load_table("db.defaults").scan().to_arrow(), table.schema()) == ours


@pytest.mark.parametrize("kind", ["timestamp_ns", "timestamptz_ns"])
@pytest.mark.spec("VER-13", "TYP-22")
def test_nanoseconds_are_read_by_others(catalog, tmp_path, duck, click, kind):
    schema = Schema(NestedField(1, "id", "int", required=True), NestedField(2, "v", kind))
    table = catalog.create_table("db.nanos", schema, properties={"format-version": "3"})
    arrow = table.scan().to_arrow().schema
    instants = pa.array([1, None, -1, 1_510_871_468_123_456_789], arrow.field("v").type)
    table.append(pa.table([pa.array(range(4), pa.int32()), instants], schema=arrow))
    ours = sorted_rows(table.scan().to_arrow(), table.schema())
    assert sorted_rows(chdb_rows(click, table), table.schema()) == ours
    if kind == "timestamp_ns":  # DuckDB does not know the other
        assert sorted_rows(duckdb_rows(duck, table), table.schema()) == ours
    with pyiceberg_catalog(tmp_path) as peer:
        assert sorted_rows(peer.load_table("db.nanos").scan().to_arrow(), table.schema()) == ours

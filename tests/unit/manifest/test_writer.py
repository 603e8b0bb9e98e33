"""Writing manifests: the contents of the file as others read it, and the record of the manifest file."""

import io as _io
import json
import math
import struct
import uuid
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from icefield.errors import FileMissing, InvalidArgument, UnsupportedFeature
from icefield.manifest import (
    ALL_COLUMNS,
    UNASSIGNED,
    DataFile,
    DataFileContent,
    FieldSummary,
    ManifestContent,
    ManifestEntries,
    ManifestFile,
    ManifestWriter,
    read_manifest,
)
from icefield.manifest import schemas as f
from icefield.partitioning import PartitionSpec
from icefield.schema import Schema
from icefield.types import NestedField, parse_type
from icefield.types.values import value_to_bytes
from planned_tables import SCHEMA, PlannedTable, spec
from vectors import VECTORS

BY_DAY = spec((3, "day", "ts_day"), (2, "identity", "name"))


def table(version: int = 2, *specs: PartitionSpec) -> PlannedTable:
    return PlannedTable(specs=specs or (BY_DAY,), format_version=version)


def full_file(made: PlannedTable, partition: tuple[Any, ...] = (19000, "a"), **given: Any) -> DataFile:
    return made.file(
        partition=partition,
        **{
            "bounds": {"id": (1, 9), "name": ("a", "z")},
            "nulls": {"id": 3, "name": 0},
            "column_sizes": {1: 40, 2: 50, 3: 60, 4: 70},
            "nan_value_counts": {4: 2},
            "key_metadata": b"\x00key",
            "split_offsets": (4, 400),
            "sort_order_id": 0,
            **given,
        },
    )


def write(made: PlannedTable, *files: DataFile, **given: Any) -> ManifestFile:
    return made.write(files, **given)


def avro(made: PlannedTable, manifest: ManifestFile) -> tuple[dict[str, str], dict[str, Any], list[Any]]:
    reader = fastavro.reader(_io.BytesIO(made.io.read(manifest.manifest_path)))
    return reader.metadata, reader.writer_schema, list(reader)


def entries_of(made: PlannedTable, manifest: ManifestFile, **given: Any) -> ManifestEntries:
    one = next(s for s in made.specs if s.spec_id == manifest.partition_spec_id)
    return read_manifest(made.io, manifest, one.partition_type(made.schema), **{"columns": ALL_COLUMNS, **given})


@pytest.mark.spec("MAN-01", "MAN-22", "MAN-31", "MAN-34", "MAN-35", "MAN-45", "MAN-46", "PART-04")
def test_a_plain_avro_library_reads_one_row_for_each_file() -> None:
    made = table()
    files = [full_file(made, (19000, "a")), full_file(made, (19001, "b")), full_file(made, (None, None))]
    _, _, rows = avro(made, write(made, *files))
    assert [row["data_file"]["file_path"] for row in rows] == [file.file_path for file in files]
    assert [row["data_file"]["partition"]["name"] for row in rows] == ["a", "b", None]
    first = rows[0]["data_file"]
    assert (first["record_count"], first["file_size_in_bytes"]) == (100, files[0].file_size_in_bytes)
    assert first["key_metadata"] == b"\x00key"
    assert first["split_offsets"] == [4, 400]
    assert {one["key"]: one["value"] for one in first["null_value_counts"]} == {1: 3, 2: 0}
    assert {one["key"]: one["value"] for one in first["lower_bounds"]} == {1: struct.pack("<q", 1), 2: b"a"}


@pytest.mark.spec("RSV-10")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_id_of_the_spec_that_files_have_in_memory_is_not_written(version: int) -> None:
    made = table(version)
    _, schema, _ = avro(made, write(made, full_file(made)))
    written = json.dumps(schema)
    assert '"field-id": 140' in written
    assert '"field-id": 141' not in written
    assert '"name": "spec_id"' not in written


@pytest.mark.spec("MAN-32")
def test_file_formats_are_written_in_upper_and_read_in_either_case() -> None:
    made = table()
    manifest = write(made, full_file(made, file_format="parquet"))
    assert avro(made, manifest)[2][0]["data_file"]["file_format"] == "PARQUET"
    assert next(entries_of(made, manifest).data_files()).file_format == "parquet"


@pytest.mark.spec("MAN-02", "MAN-21")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_node_of_the_avro_schema_has_its_id_and_the_usual_record_names(version: int) -> None:
    made = table(version)
    schema = avro(made, write(made, full_file(made)))[1]
    ids: set[Any] = set()
    names: set[str] = set()

    def walk(node: Any) -> None:
        if isinstance(node, list):
            for one in node:
                walk(one)
        elif isinstance(node, dict) and node["type"] == "record":
            names.add(node["name"])
            for one in node["fields"]:
                ids.add(one["field-id"])
                walk(one["type"])
        elif isinstance(node, dict) and node["type"] == "array":
            ids.add(node.get("element-id"))
            walk(node["items"])

    walk(schema)
    ids.discard(None)
    assert schema["name"] == "manifest_entry"
    assert {"r2", "r102", "k117_v118", "k126_v127"} <= names
    assert ids == f.entry_schema(version, BY_DAY.partition_type(SCHEMA)).field_ids


@pytest.mark.spec("MAN-03", "MAN-04", "MAN-05", "MAN-06")
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("row", VECTORS["manifest_key_metadata"])
def test_the_header_holds_the_keys_that_the_version_wants(version: int, row: dict[str, Any]) -> None:
    made = table(version)
    metadata, _, _ = avro(made, write(made, full_file(made)))
    rule = row[f"v{version}"]
    assert (row["key"] in metadata) or rule != "required"
    assert (row["key"] not in metadata) or rule is not None


@pytest.mark.spec("MAN-03", "MAN-04", "MAN-05", "MAN-06")
def test_the_header_states_schema_spec_version_and_content() -> None:
    made = PlannedTable(specs=[spec((3, "day", "ts_day"), spec_id=7)])
    deletes = made.file(content=DataFileContent.POSITION_DELETES, spec_id=7, partition=(1,))
    metadata, _, _ = avro(made, write(made, deletes))
    assert json.loads(metadata["schema"])["fields"][0] == {"id": 1, "name": "id", "required": False, "type": "long"}
    assert json.loads(metadata["partition-spec"]) == [
        {"source-id": 3, "field-id": 1000, "name": "ts_day", "transform": "day"}
    ]
    given = {key: metadata[key] for key in ("schema-id", "partition-spec-id", "format-version", "content")}
    assert given == {"schema-id": "0", "partition-spec-id": "7", "format-version": "2", "content": "deletes"}


@pytest.mark.spec("MAN-07", "MAN-08", "MAN-17", "MAN-13", "VER-04")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_new_file_is_added_by_its_snapshot_and_leaves_its_sequence_numbers_open(version: int) -> None:
    made = table(version)
    _, _, [row] = avro(made, write(made, full_file(made), snapshot_id=77))
    assert (row["status"], row["snapshot_id"]) == (1, 77)
    if version == 1:
        assert not {"sequence_number", "file_sequence_number"} & set(row)
        assert row["data_file"]["block_size_in_bytes"] == 67108864
    else:
        assert (row["sequence_number"], row["file_sequence_number"]) == (None, None)


@pytest.mark.spec("MAN-13")
def test_an_older_data_sequence_number_may_be_given_but_the_file_s_own_is_always_inherited() -> None:
    made = table()
    manifest = write(made, full_file(made), data_sequence_number=3)
    _, _, [row] = avro(made, manifest)
    assert (row["sequence_number"], row["file_sequence_number"]) == (3, None)
    assert manifest.min_sequence_number == 3
    entries = entries_of(made, manifest.assigned(1000, 9))
    assert entries.column(f.SEQUENCE_NUMBER).to_pylist() == [3]
    assert entries.column(f.FILE_SEQUENCE_NUMBER).to_pylist() == [9]


@pytest.mark.spec("ML-04", "ML-05", "ML-10", "ML-11", "ML-09", "ML-21")
def test_the_manifest_file_states_exact_length_counts_and_spec() -> None:
    made = table()
    manifest = write(made, full_file(made, record_count=7), full_file(made, record_count=5), snapshot_id=77)
    assert manifest.manifest_length == len(made.io.read(manifest.manifest_path))
    assert (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count) == (2, 0, 0)
    assert (manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count) == (12, 0, 0)
    assert (manifest.added_snapshot_id, manifest.sequence_number, manifest.partition_spec_id) == (77, UNASSIGNED, 0)


def committed(made: PlannedTable, *files: DataFile, snapshot_id: int = 50, number: int = 4) -> ManifestEntries:
    manifest = write(made, *files, snapshot_id=snapshot_id).assigned(snapshot_id, number)
    return entries_of(made, manifest)


def rewritten(made: PlannedTable, use: Any, version: int = 2) -> tuple[ManifestFile, list[Any]]:
    location = made.path(f"metadata/{uuid.uuid4()}.avro")
    with ManifestWriter(made.io, location, made.specs[0], made.schema, version, 99) as writer:
        use(writer)
    manifest = writer.close()
    return manifest, avro(made, manifest)[2]


@pytest.mark.spec("MAN-14", "MAN-15", "MAN-17", "MAN-08", "MAN-45", "ENC-01")
def test_a_rewrite_keeps_snapshot_and_writes_sequence_numbers_out_and_deletion_names_the_deleting_snapshot() -> None:
    made = table()
    entries = committed(made, full_file(made, record_count=5), full_file(made, record_count=6))

    def use(writer: ManifestWriter) -> None:
        writer.existing(entries.take(np.array([0])))
        writer.delete(entries.take(np.array([1])))
        writer.add([full_file(made, record_count=7)])

    manifest, rows = rewritten(made, use)
    numbers = [(r["status"], r["snapshot_id"], r["sequence_number"], r["file_sequence_number"]) for r in rows]
    assert numbers == [(0, 50, 4, 4), (2, 99, 4, 4), (1, 99, None, None)]
    assert [row["data_file"]["key_metadata"] for row in rows] == [b"\x00key"] * 3
    assert (manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count) == (7, 5, 6)
    # The lowest number of the live entries: the deleted entry does not count, and the added entry has a higher number.
    assert manifest.min_sequence_number == 4


@pytest.mark.spec("MAN-20")
def test_row_ids_are_written_out_for_existing_files_and_left_open_for_new_ones() -> None:
    made = table(3)
    manifest = write(made, full_file(made, record_count=5), full_file(made, record_count=6), snapshot_id=50)
    listed = made_assigned(manifest, first_row_id=1000)
    entries = entries_of(made, listed)
    _, rows = rewritten(made, lambda w: (w.existing(entries), w.add([full_file(made, first_row_id=5)])), 3)
    assert [row["data_file"]["first_row_id"] for row in rows] == [1000, 1005, None]


def made_assigned(manifest: ManifestFile, *, first_row_id: int, number: int = 4) -> ManifestFile:
    return replace(manifest.assigned(manifest.added_snapshot_id, number), first_row_id=first_row_id)


@pytest.mark.spec("MAN-17", "MAN-14")
def test_entries_carried_over_keep_their_status() -> None:
    made = table()
    old = committed(made, full_file(made), full_file(made))
    first, _ = rewritten(made, lambda w: (w.existing(old.take(np.array([0]))), w.delete(old.take(np.array([1])))))
    _, rows = rewritten(made, lambda w: w.add_entries(entries_of(made, first.assigned(99, 8))))
    assert [(row["status"], row["snapshot_id"], row["sequence_number"]) for row in rows] == [(0, 50, 4), (2, 99, 4)]


@pytest.mark.spec("MAN-13")
def test_entries_added_by_this_very_snapshot_go_on_inheriting_when_manifests_are_merged() -> None:
    made = table()
    mine = entries_of(made, write(made, full_file(made), snapshot_id=99))
    explicit = entries_of(made, write(made, full_file(made), snapshot_id=99, data_sequence_number=2))
    _, rows = rewritten(made, lambda w: (w.add_entries(mine), w.add_entries(explicit)))
    assert [(row["sequence_number"], row["file_sequence_number"]) for row in rows] == [(None, None), (2, None)]


@pytest.mark.spec("MAN-14")
def test_a_file_without_sequence_numbers_cannot_become_existing() -> None:
    made = table()
    unlisted = entries_of(made, write(made, full_file(made), snapshot_id=98))
    with pytest.raises(InvalidArgument, match="sequence numbers"):
        rewritten(made, lambda w: w.existing(unlisted))


def test_entries_read_without_statistics_are_not_rewritten() -> None:
    made = table()
    manifest = write(made, full_file(made)).assigned(1000, 1)
    entries = read_manifest(made.io, manifest, BY_DAY.partition_type(SCHEMA))
    with pytest.raises(InvalidArgument, match="statistics"):
        rewritten(made, lambda w: w.existing(entries))


@pytest.mark.spec("MAN-38", "MAN-39", "MAN-40", "MAN-41", "MAN-43", "MAN-44", "MAN-48")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_is_written_is_read_again(version: int) -> None:
    made = table(version)
    files = [full_file(made), full_file(made, (None, None)), made.file(partition=(-5, "é"), record_count=0)]
    manifest = write(made, *files)
    assert list(entries_of(made, manifest.assigned(1000, 1)).data_files()) == files


@pytest.mark.spec("PART-05", "MAN-19")
def test_a_manifest_takes_files_of_one_spec_and_one_kind_only() -> None:
    made = PlannedTable(specs=[spec(), spec((1, "identity", "id"), spec_id=1)])
    data, other = made.file(), made.file(partition=(1,), spec_id=1)
    deletes = made.file(content=DataFileContent.POSITION_DELETES)
    for wrong in (other, deletes):
        with pytest.raises(InvalidArgument):
            made.write([data, wrong])
    entries = committed(made, data)
    location = made.path("metadata/x.avro")
    for one, content in ((made.specs[1], ManifestContent.DATA), (made.specs[0], ManifestContent.DELETES)):
        writer = ManifestWriter(made.io, location, one, made.schema, 2, 99, content)
        with pytest.raises(InvalidArgument):
            writer.existing(entries)
        writer.abort()


@pytest.mark.spec("MAN-47", "MAN-50", "MAN-51", "MAN-52", "DEL-31", "DEL-36")
def test_delete_files_carry_what_their_kind_needs() -> None:
    made = PlannedTable(format_version=3)
    equality = made.file(content=DataFileContent.EQUALITY_DELETES, equality_ids=(1, 2))
    vector = made.file(
        content=DataFileContent.POSITION_DELETES,
        file_format="puffin",
        referenced_data_file="memory://x/data.parquet",
        content_offset=4,
        content_size_in_bytes=40,
    )
    _, _, rows = avro(made, made.write([equality, vector]))
    assert [row["data_file"]["content"] for row in rows] == [2, 1]
    assert [row["data_file"]["equality_ids"] for row in rows] == [[1, 2], None]
    place = [rows[1]["data_file"][k] for k in ("referenced_data_file", "content_offset", "content_size_in_bytes")]
    assert place == ["memory://x/data.parquet", 4, 40]
    for wrong in (
        made.file(content=DataFileContent.EQUALITY_DELETES),
        made.file(equality_ids=(1,)),
        made.file(content=DataFileContent.POSITION_DELETES, file_format="puffin"),
    ):
        with pytest.raises(InvalidArgument):
            made.write([wrong])
    made.version = 2
    with pytest.raises(UnsupportedFeature):
        made.write([vector])
    made.version = 1
    with pytest.raises(UnsupportedFeature):
        made.write([equality])


@pytest.mark.spec("MAN-23")
def test_a_path_that_is_live_twice_is_refused_and_nothing_is_published() -> None:
    made = table()
    file = full_file(made)
    location = made.path("metadata/twice.avro")
    writer = ManifestWriter(made.io, location, BY_DAY, SCHEMA, 2, 1)
    writer.add([file])
    writer.add([full_file(made), file])
    with pytest.raises(InvalidArgument, match="twice"):
        writer.close()
    with pytest.raises(FileMissing):
        made.io.read(location)


def test_an_exception_leaves_no_manifest() -> None:
    made = table()
    location = made.path("metadata/aborted.avro")

    def fails() -> None:
        with ManifestWriter(made.io, location, BY_DAY, SCHEMA, 2, 1) as writer:
            writer.add([full_file(made)])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    with pytest.raises(FileMissing):
        made.io.read(location)


def test_a_tuple_that_does_not_fit_the_spec_is_refused() -> None:
    made = table()
    for partition in ((), (1,), (1, "a", 2), ("x", "a")):
        with pytest.raises(InvalidArgument):
            made.write([full_file(made, partition)])


@pytest.mark.spec("ML-12", "ML-13", "ML-14", "ML-15", "ML-16", "ML-21", "PART-22")
def test_field_summaries_cover_every_entry() -> None:
    floats = spec((4, "identity", "score"), (2, "identity", "name"), (3, "day", "ts_day"))
    made = PlannedTable(specs=[floats])
    tuples = [(0.0, "b", 5), (-0.0, None, -3), (math.nan, "a", 7)]
    summaries = write(made, *(made.file(partition=one) for one in tuples)).partitions
    assert summaries == (
        FieldSummary(False, True, struct.pack("<d", -0.0), struct.pack("<d", 0.0)),
        FieldSummary(True, False, b"a", b"b"),
        FieldSummary(False, False, struct.pack("<i", -3), struct.pack("<i", 7)),
    )


@pytest.mark.spec("ML-15", "ML-16")
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([None, None], FieldSummary(True, False)),
        ([math.nan, None], FieldSummary(True, True)),
        ([-0.0], FieldSummary(False, False, struct.pack("<d", -0.0), struct.pack("<d", -0.0))),
        ([0.0], FieldSummary(False, False, struct.pack("<d", 0.0), struct.pack("<d", 0.0))),
        ([-1.0, -0.0], FieldSummary(False, False, struct.pack("<d", -1.0), struct.pack("<d", -0.0))),
        ([0.0, 1.0, -0.0], FieldSummary(False, False, struct.pack("<d", -0.0), struct.pack("<d", 1.0))),
    ],
)
def test_bounds_of_floats_leave_out_null_and_nan_and_state_the_zeros_apart(
    values: list[float | None], expected: FieldSummary
) -> None:
    made = PlannedTable(specs=[spec((4, "identity", "score"))])
    assert write(made, *(made.file(partition=(value,)) for value in values)).partitions == (expected,)
    # The summaries of two calls are combined.
    location = made.path("metadata/two.avro")
    with ManifestWriter(made.io, location, made.specs[0], SCHEMA, 2, 1) as writer:
        for value in values:
            writer.add([made.file(partition=(value,))])
    assert writer.close().partitions == (expected,)


@pytest.mark.spec("PART-16", "ML-12")
def test_an_unpartitioned_table_has_empty_tuples_and_no_summaries() -> None:
    made = PlannedTable()
    manifest = made.write([made.file()])
    assert avro(made, manifest)[2][0]["data_file"]["partition"] == {}
    assert manifest.partitions == ()
    assert next(entries_of(made, manifest).data_files()).partition == ()


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("boolean", False, True),
        ("int", -5, 2**31 - 1),
        ("long", -(2**63), 5),
        ("float", -1.5, 2.5),
        ("date", -1, 20000),
        ("time", 0, 86_399_999_999),
        ("timestamp", -1, 10**15),
        ("timestamptz", -1, 10**15),
        ("string", "a", "é\U0001f600"),
        ("uuid", bytes(16), b"\xff" * 16),
        ("fixed[3]", b"\x00ab", b"\xff\x00\x00"),
        ("binary", b"", b"\xff"),
        ("decimal(9,2)", "-1.25", "7.00"),
    ],
)
@pytest.mark.spec("MAN-33", "ML-15", "PART-22")
def test_partition_values_of_every_type_are_written_summarised_and_read(kind: str, low: Any, high: Any) -> None:
    if kind.startswith("decimal"):
        low, high = Decimal(low), Decimal(high)
    schema = Schema(NestedField(1, "p", parse_type(kind)))
    made = PlannedTable(schema=schema, specs=[spec((1, "identity", "p"))])
    manifest = write(made, *(made.file(partition=(value,)) for value in (high, None, low)))
    type_ = parse_type(kind)
    assert manifest.partitions == (FieldSummary(True, False, value_to_bytes(type_, low), value_to_bytes(type_, high)),)
    assert [file.partition for file in entries_of(made, manifest).data_files()] == [(high,), (None,), (low,)]


@pytest.mark.spec("MAN-21")
@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_the_manifest(version: int, tmp_path: Any) -> None:
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import ManifestFile as Theirs

    made = PlannedTable(specs=[BY_DAY], format_version=version, location=f"file://{tmp_path}")
    (tmp_path / "metadata").mkdir()
    manifest = write(made, full_file(made), full_file(made, (None, None)))
    theirs = Theirs.from_args(
        manifest_path=manifest.manifest_path,
        manifest_length=manifest.manifest_length,
        partition_spec_id=0,
        content=0,
        sequence_number=6,
        min_sequence_number=6,
        added_snapshot_id=1000,
        added_files_count=2,
        existing_files_count=0,
        deleted_files_count=0,
    )
    rows = theirs.fetch_manifest_entry(PyArrowFileIO(), discard_deleted=False)
    assert [row.sequence_number for row in rows] == [6, 6]
    data = rows[0].data_file
    assert (data.file_format.value, list(data.partition), data.record_count) == ("PARQUET", [19000, "a"], 100)
    assert data.lower_bounds == {1: struct.pack("<q", 1), 2: b"a"}
    assert data.nan_value_counts == {4: 2}
    assert list(rows[1].data_file.partition) == [None, None]


def test_the_writer_grows_and_states_its_size() -> None:
    made = table()
    with ManifestWriter(made.io, made.path("metadata/big.avro"), BY_DAY, SCHEMA, 2, 1) as writer:
        before = writer.estimated_size
        writer.add(full_file(made) for _ in range(500))
        assert writer.estimated_size > before
    assert len(entries_of(made, writer.close())) == 500
    assert isinstance(entries_of(made, writer.close()).column(f.FILE_PATH), pa.StringArray)

"""Manifest lists written and read: fields, splicing, numbering, and the lists of old tables."""

import io as _io
from dataclasses import replace
from typing import Any

import fastavro
import numpy as np
import pytest
from icefield.abc import PutMode
from icefield.errors import InvalidArgument, InvalidMetadata, UnsupportedFeature
from icefield.manifest import (
    UNASSIGNED,
    FieldSummary,
    ManifestContent,
    ManifestFile,
    ManifestList,
    assign_row_ids,
    clear_caches,
    read_manifest_list,
    write_manifest_list,
)
from icefield.manifest.manifest_list import CONTAINS_NULL, LOWER
from icefield.metadata.snapshots import Snapshot
from planned_tables import PlannedTable, spec
from vectors import VECTORS


def manifest(name: str = "m0", **given: Any) -> ManifestFile:
    return ManifestFile(
        **{
            "manifest_path": f"memory://list/{name}.avro",
            "manifest_length": 1234,
            "partition_spec_id": 3,
            "sequence_number": UNASSIGNED,
            "min_sequence_number": UNASSIGNED,
            "added_snapshot_id": 50,
            "added_files_count": 1,
            "existing_files_count": 2,
            "deleted_files_count": 3,
            "added_rows_count": 10,
            "existing_rows_count": 20,
            "deleted_rows_count": 30,
            "partitions": (FieldSummary(True, False, b"a", b"b"), FieldSummary(False)),
            **given,
        }
    )


class Lists:
    """Writes lists below one location."""

    def __init__(self) -> None:
        self.made = PlannedTable()
        self._count = 0

    def write(self, manifests: list[ManifestFile], version: int = 2, **given: Any) -> tuple[ManifestList, int | None]:
        self._count += 1
        return write_manifest_list(
            self.made.io,
            self.made.path(f"snap-{self._count}.avro"),
            manifests,
            **{
                "format_version": version,
                "snapshot_id": 50,
                "parent_snapshot_id": 40,
                "sequence_number": 9 if version > 1 else 0,
                "first_row_id": 1000 if version > 2 else None,
                **given,
            },
        )

    def avro(self, listed: ManifestList) -> tuple[dict[str, str], Any, list[Any]]:
        reader = fastavro.reader(_io.BytesIO(self.made.io.read(listed.location)))
        return reader.metadata, reader.writer_schema, list(reader)

    def read(self, location: str, version: int = 2) -> ManifestList:
        clear_caches()
        return read_manifest_list(self.made.io, snapshot(location), Version(version))


class Version:
    def __init__(self, format_version: int) -> None:
        self.format_version = format_version


def snapshot(location: str | None = None, **given: Any) -> Snapshot:
    return Snapshot(**{"snapshot_id": 50, "timestamp_ms": 1, "manifest_list": location, **given})


@pytest.fixture
def lists() -> Lists:
    return Lists()


@pytest.mark.spec("ML-01", "ML-03", "ML-04", "ML-05", "ML-06", "ML-07", "ML-08", "ML-09", "ML-10", "ML-11", "ML-12")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_plain_avro_library_reads_every_field_of_the_version(lists: Lists, version: int) -> None:
    listed, _ = lists.write([manifest(key_metadata=b"k")], version)
    _, schema, [row] = lists.avro(listed)
    assert schema["name"] == "manifest_file"
    wanted = {one["name"]: one["id"] for one in VECTORS["manifest_file_fields"] if one[f"v{version}"]}
    assert {one["name"]: one["field-id"] for one in schema["fields"]} == wanted
    expected = {
        "manifest_path": "memory://list/m0.avro",
        "manifest_length": 1234,
        "partition_spec_id": 3,
        "content": 0,
        "sequence_number": 9,
        "min_sequence_number": 9,
        "added_snapshot_id": 50,
        "added_files_count": 1,
        "existing_files_count": 2,
        "deleted_files_count": 3,
        "added_rows_count": 10,
        "existing_rows_count": 20,
        "deleted_rows_count": 30,
        "key_metadata": b"k",
        "first_row_id": 1000,
        "partitions": [
            {"contains_null": True, "contains_nan": False, "lower_bound": b"a", "upper_bound": b"b"},
            {"contains_null": False, "contains_nan": None, "lower_bound": None, "upper_bound": None},
        ],
    }
    assert row == {name: value for name, value in expected.items() if name in wanted}


@pytest.mark.spec("ML-20")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_header_states_of_the_snapshot(lists: Lists, version: int) -> None:
    metadata, _, _ = lists.avro(lists.write([manifest()], version)[0])
    expected = {"snapshot-id": "50", "parent-snapshot-id": "40", "format-version": str(version)}
    if version > 1:
        expected["sequence-number"] = "9"
    if version > 2:
        expected["first-row-id"] = "1000"
    own = {k: v for k, v in metadata.items() if not k.startswith("avro.")}
    assert own == expected
    metadata, _, _ = lists.avro(lists.write([manifest()], version, parent_snapshot_id=None)[0])
    assert metadata["parent-snapshot-id"] == "null"


@pytest.mark.spec("ML-02", "MAN-13", "ML-09", "SNAP-17")
def test_each_attempt_numbers_new_manifests_anew_and_leaves_others_alone(lists: Lists) -> None:
    new, old = manifest("new"), manifest("old", sequence_number=3, min_sequence_number=2, added_snapshot_id=30)
    given = manifest("given", min_sequence_number=4)
    for number in (9, 10):
        listed, _ = lists.write([new, old, given], sequence_number=number)
        numbers = [(m.sequence_number, m.min_sequence_number, m.added_snapshot_id) for m in listed.manifests]
        assert numbers == [(number, number, 50), (3, 2, 30), (number, 4, 50)]
    with pytest.raises(InvalidMetadata, match="no sequence number"):
        lists.write([manifest(added_snapshot_id=49)])


@pytest.mark.spec("ML-13", "ML-14", "ML-15", "ML-17")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_is_written_is_read_again(lists: Lists, version: int) -> None:
    deletes = [manifest("d", content=ManifestContent.DELETES)] if version > 1 else []
    given = [manifest("a"), manifest("b", partitions=None, key_metadata=b"\x00"), *deletes]
    listed, _ = lists.write(given, version)
    again = lists.read(listed.location, version)
    assert [m.manifest_path for m in again.manifests] == [m.manifest_path for m in given]
    assert [m.content for m in again.manifests] == [m.content for m in given]
    assert [m.partitions for m in again.manifests] == [m.partitions for m in given]
    assert [m.key_metadata for m in again.manifests] == [m.key_metadata for m in given]
    assert again.manifests == listed.manifests


def blocks(data: bytes) -> bytes:
    """What follows the header."""
    sync = data[-16:]
    return data[data.index(sync) + 16 :]


@pytest.mark.spec("SNAP-12", "SNAP-10", "ML-01")
def test_a_list_is_extended_by_splicing_the_blocks_of_the_one_before(lists: Lists) -> None:
    base, _ = lists.write([manifest("a"), manifest("b")])
    base = lists.read(base.location)
    listed, _ = lists.write([manifest("c", added_snapshot_id=60)], base=base, snapshot_id=60, sequence_number=10)
    data = lists.made.io.read(listed.location)
    assert blocks(data).startswith(blocks(lists.made.io.read(base.location)))
    metadata, _, rows = lists.avro(listed)
    assert metadata["snapshot-id"] == "60"
    assert [(row["manifest_path"][-6:], row["sequence_number"]) for row in rows] == [
        ("a.avro", 9),
        ("b.avro", 9),
        ("c.avro", 10),
    ]
    # No part of the old list was decoded.
    assert base._columns is None


@pytest.mark.spec("VER-02", "ML-08", "VER-03")
def test_a_list_of_an_older_version_is_written_anew_and_its_manifests_count_as_older_than_all(lists: Lists) -> None:
    made = lists.made
    old = [made.write([made.file(record_count=5)], snapshot_id=20)]
    unknown = replace(old[0], added_files_count=None, existing_files_count=None, deleted_files_count=None)
    unknown = replace(unknown, added_rows_count=None, existing_rows_count=None, deleted_rows_count=None)
    base, _ = lists.write([unknown], 1, snapshot_id=20)
    read = lists.read(base.location, 1)
    assert read.manifests[0].added_files_count is None
    assert (read.manifests[0].sequence_number, read.manifests[0].content) == (0, ManifestContent.DATA)
    listed, _ = lists.write([manifest("new")], base=read)
    first, second = lists.read(listed.location).manifests
    assert (first.sequence_number, first.min_sequence_number, second.sequence_number) == (0, 0, 9)
    # Version 2 requires the counts, so the writer counted the entries.
    assert (first.added_files_count, first.existing_files_count, first.added_rows_count) == (1, 0, 5)


@pytest.mark.spec("ML-18", "ROW-08", "ROW-14", "ROW-12")
def test_data_manifests_get_row_ids_by_the_worked_example(lists: Lists) -> None:
    example = VECTORS["row_lineage_example"]
    given = [
        manifest(
            row["name"],
            added_rows_count=row["added_rows"],
            existing_rows_count=row["existing_rows"],
            first_row_id=row["first_row_id"] if row.get("assigned_now") is False else None,
        )
        for row in example["manifests"]
    ]
    given.insert(2, manifest("deletes", content=ManifestContent.DELETES))
    listed, following = lists.write(given, 3, first_row_id=example["next_row_id_before"])
    found = {m.manifest_path[14:-5]: m.first_row_id for m in listed.manifests}
    assert found == {**{row["name"]: row["first_row_id"] for row in example["manifests"]}, "deletes": None}
    assert following == example["next_row_id_after"]


@pytest.mark.spec("ROW-11", "ML-18")
def test_manifests_of_a_table_before_v3_get_row_ids_with_the_first_list_of_v3(lists: Lists) -> None:
    base, _ = lists.write([manifest("a"), manifest("b")])
    listed, following = lists.write([manifest("c")], 3, base=base, first_row_id=0)
    assert [m.first_row_id for m in listed.manifests] == [0, 30, 60]
    assert following == 90
    more, following = lists.write([manifest("d")], 3, base=lists.read(listed.location, 3), first_row_id=90)
    assert [m.first_row_id for m in more.manifests] == [0, 30, 60, 90]
    assert following == 120
    assert blocks(more.raw or b"").startswith(blocks(listed.raw or b""))


def test_row_ids_need_a_start_and_known_counts(lists: Lists) -> None:
    with pytest.raises(InvalidArgument):
        lists.write([manifest()], 3, first_row_id=None)
    with pytest.raises(InvalidArgument, match="rows"):
        assign_row_ids([manifest(added_rows_count=None)], 0)


@pytest.mark.spec("DEL-03", "VER-04")
def test_version_one_has_no_manifests_of_deletes(lists: Lists) -> None:
    with pytest.raises(UnsupportedFeature):
        lists.write([manifest(content=ManifestContent.DELETES)], 1)


OLD_NAMES = {row["name"]: row["old_names"][0] for row in VECTORS["manifest_file_fields"] if row.get("old_names")}


def foreign_list(lists: Lists, fields: dict[str, tuple[int, Any]], rows: list[dict[str, Any]], ids: bool = True) -> str:
    schema = {
        "type": "record",
        "name": "manifest_file",
        "fields": [
            {"name": name, "type": kind, **({"field-id": number} if ids else {})}
            for name, (number, kind) in fields.items()
        ],
    }
    out = _io.BytesIO()
    fastavro.writer(out, schema, rows)
    lists._count += 1
    location = lists.made.path(f"foreign-{lists._count}.avro")
    lists.made.io.put(location, out.getvalue(), PutMode.CREATE)
    return location


REQUIRED: dict[str, tuple[int, Any]] = {
    "manifest_path": (500, "string"),
    "manifest_length": (501, "long"),
    "partition_spec_id": (502, "int"),
    "added_snapshot_id": (503, "long"),
}
ROW = {"manifest_path": "memory://x/m.avro", "manifest_length": 1, "partition_spec_id": 2, "added_snapshot_id": 3}


@pytest.mark.spec("ML-10", "ML-23", "VER-03", "ML-06", "ML-07", "ML-08")
@pytest.mark.parametrize("ids", [True, False])
def test_old_names_other_orders_and_unknown_fields_are_read_and_what_is_missing_has_its_default(
    lists: Lists, ids: bool
) -> None:
    counts = {old: (504 + i, ["null", "int"]) for i, old in enumerate(OLD_NAMES.values())}
    fields = {**counts, "own": (9999, "string"), **dict(reversed(REQUIRED.items()))}
    row = {**ROW, "own": "?", **{old: i for i, old in enumerate(counts)}}
    [found] = lists.read(foreign_list(lists, fields, [row], ids)).manifests
    assert found == ManifestFile(
        **ROW,  # type: ignore[arg-type]
        added_files_count=0,
        existing_files_count=1,
        deleted_files_count=2,
    )


@pytest.mark.spec("ML-03", "ML-04", "ML-05", "ML-09", "MAN-54")
@pytest.mark.parametrize("missing", REQUIRED)
def test_a_list_without_what_every_version_requires_is_refused(lists: Lists, missing: str) -> None:
    fields = {k: v for k, v in REQUIRED.items() if k != missing}
    location = foreign_list(lists, fields, [{k: v for k, v in ROW.items() if k != missing}])
    with pytest.raises(InvalidMetadata, match=missing) as caught:
        _ = lists.read(location).manifests
    assert caught.value.data["location"] == location
    nullable = {**fields, missing: (REQUIRED[missing][0], ["null", REQUIRED[missing][1]])}
    location = foreign_list(lists, nullable, [{**ROW, missing: None}])
    with pytest.raises(InvalidMetadata, match=missing):
        _ = lists.read(location).manifests


def test_a_list_that_names_a_manifest_of_no_name_is_refused(lists: Lists) -> None:
    location = foreign_list(lists, REQUIRED, [ROW, {**ROW, "manifest_path": ""}])
    with pytest.raises(InvalidMetadata, match=f"{location}: manifest_path is empty"):
        _ = lists.read(location).manifests


@pytest.mark.parametrize(
    "fields",
    [
        {"manifest_path": (500, "long")},
        {"content": (517, "int")},
        {"partitions": (507, "string")},
        {"partitions": (507, {"type": "array", "items": "int"})},
        {"added_files_count": (504, "string")},
    ],
)
def test_a_list_with_values_that_cannot_be_is_refused(lists: Lists, fields: dict[str, Any]) -> None:
    values: dict[str, Any] = {"manifest_path": 5, "content": 2, "partitions": [1], "added_files_count": "x"}
    row = {**ROW, **{name: values[name] for name in fields}}
    if fields.get("partitions") == (507, "string"):
        row["partitions"] = "x"
    with pytest.raises(InvalidMetadata):
        _ = lists.read(foreign_list(lists, {**REQUIRED, **fields}, [row])).manifests


@pytest.mark.spec("ML-21", "ML-10", "SCAN-17")
def test_a_manifest_may_be_skipped_only_when_both_counts_are_known_to_be_zero(lists: Lists) -> None:
    cases = [(0, 0), (None, 0), (0, None), (None, None), (1, 0), (0, 1), (-1, 0)]
    given = [manifest(str(i), added_files_count=a, existing_files_count=e) for i, (a, e) in enumerate(cases)]
    listed, _ = lists.write(given, 1)
    assert lists.read(listed.location, 1).may_have_live_files().tolist() == [False, *[True] * 6]


@pytest.mark.spec("ML-12", "ML-13", "ML-15")
def test_summaries_come_in_columns_and_are_null_where_there_is_none(lists: Lists) -> None:
    given = [manifest("a"), manifest("b", partitions=None), manifest("c", partitions=(FieldSummary(False),))]
    read = lists.read(lists.write(given)[0].location)
    rows = np.array([2, 0, 1])
    assert read.summary_column(0, CONTAINS_NULL, rows).to_pylist() == [False, True, None]
    assert read.summary_column(1, CONTAINS_NULL, rows).to_pylist() == [None, False, None]
    assert read.summary_column(0, LOWER, rows).to_pylist() == [None, b"a", None]
    assert read.summary_column(7, LOWER, rows).to_pylist() == [None, None, None]


@pytest.mark.spec("SNAP-11", "ML-22")
def test_manifests_that_an_old_snapshot_names_itself_are_looked_up() -> None:
    made = PlannedTable(specs=[spec(), spec((1, "identity", "id"), spec_id=4)], format_version=1)
    first, second = made.write([made.file()]), made.write([made.file(partition=(1,), spec_id=4)])
    inline = snapshot(None, manifests=(first.manifest_path, second.manifest_path))
    found = read_manifest_list(made.io, inline, Version(1)).manifests
    assert [(m.manifest_path, m.manifest_length, m.partition_spec_id) for m in found] == [
        (m.manifest_path, m.manifest_length, m.partition_spec_id) for m in (first, second)
    ]
    assert [m.added_files_count for m in found] == [None, None]
    assert (found[0].sequence_number, found[0].content) == (0, ManifestContent.DATA)
    # Upgraded tables keep them.
    assert len(read_manifest_list(made.io, inline, Version(2))) == 2


@pytest.mark.spec("ML-19")
def test_a_snapshot_of_version_two_without_a_list_is_refused(lists: Lists) -> None:
    with pytest.raises(InvalidMetadata, match="manifest list"):
        read_manifest_list(lists.made.io, snapshot(None, sequence_number=3), Version(2))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.spec("ML-01", "VER-13")
def test_pyiceberg_reads_the_list_and_its_own_is_read(version: Any, tmp_path: Any) -> None:
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import read_manifest_list as their_reader
    from pyiceberg.manifest import write_manifest_list as their_writer

    made = PlannedTable(format_version=version, location=f"file://{tmp_path}")
    io = PyArrowFileIO()
    location = made.path("mine.avro")
    write_manifest_list(
        made.io,
        location,
        [manifest("a"), manifest("b", partitions=None)],
        format_version=version,
        snapshot_id=50,
        parent_snapshot_id=None,
        sequence_number=9 if version > 1 else 0,
    )
    rows = list(their_reader(io.new_input(location)))
    assert [row.manifest_path for row in rows] == ["memory://list/a.avro", "memory://list/b.avro"]
    first = rows[0]
    assert (first.added_files_count, first.existing_rows_count, first.partition_spec_id) == (1, 20, 3)
    assert first.partitions is not None
    assert (first.partitions[0].contains_null, first.partitions[0].lower_bound) == (True, b"a")
    target = made.path("theirs.avro")
    with their_writer(version, io.new_output(target), 50, None, 9, "deflate") as writer:
        writer.add_manifests(rows)
    mine = read_manifest_list(made.io, snapshot(location), Version(version)).manifests
    theirs = read_manifest_list(made.io, snapshot(target), Version(version)).manifests
    assert theirs == mine


def test_a_list_is_fetched_once_and_a_list_just_written_not_at_all() -> None:
    made = PlannedTable()
    made.add([made.file()])
    made.commit()
    made.io.opened.clear()  # type: ignore[attr-defined]
    assert len(made.manifest_list()) == 1
    assert made.io.opened == []  # type: ignore[attr-defined]
    clear_caches()
    assert made.manifest_list() is made.manifest_list()
    assert len(made.io.opened) == 1  # type: ignore[attr-defined]


def test_no_damage_leads_to_anything_but_a_typed_error_that_names_the_list(lists: Lists) -> None:
    good = lists.made.io.read(lists.write([manifest(str(i)) for i in range(5)])[0].location)
    rng = np.random.default_rng(3)
    refused = []
    for round_ in range(200):
        data = bytearray(good)
        if round_ % 2:
            data[rng.integers(len(data))] = rng.integers(256)
        else:
            del data[rng.integers(len(data)) :]
        location = lists.made.path(f"damaged-{round_}.avro")
        lists.made.io.put(location, bytes(data), PutMode.CREATE)
        try:
            _ = lists.read(location).manifests
        except (InvalidMetadata, UnsupportedFeature) as error:
            refused.append((location, str(error)))
    assert 100 < len(refused) < 200
    assert all(location in message for location, message in refused)


def test_a_list_that_is_not_decoded_counts_more_than_its_file() -> None:
    assert ManifestList("memory://list/l.avro", raw=b"x" * 5_000).nbytes > 5_000

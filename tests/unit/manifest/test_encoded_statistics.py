"""Statistics that pass from manifests to others as they are encoded."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from foreign_manifests import FILE_FIELDS, Foreign
from icefield.abc import FormatAbility
from icefield.errors import InvalidMetadata
from icefield.manifest import (
    ALL_COLUMNS,
    DataFile,
    ManifestEntries,
    ManifestFile,
    ManifestReader,
    ManifestRequest,
    ManifestWriter,
)
from icefield.manifest import schemas as f
from icefield.manifest.columns import MAP_TYPES
from icefield_avro.avro_format import AvroFormat
from planned_tables import SCHEMA, PlannedTable, spec

BY_DAY = spec((3, "day", "ts_day"))
MANY = 60
ENCODED = ManifestRequest(ALL_COLUMNS, encoded=True)


def some_files(made: PlannedTable, count: int) -> list[DataFile]:
    return [
        made.file(
            partition=(19000 + n % 3,),
            bounds={"id": (n, n + 9), "name": ("a" * (n % 5), "z")} if n % 4 else {},
            nulls={"id": n % 7} if n % 4 else {},
            column_sizes={1: 10**n, 2: n} if n % 4 and n < 18 else {},
            nan_value_counts={4: n} if n % 2 else {},
        )
        for n in range(count)
    ]


def read(made: PlannedTable, manifest: ManifestFile, request: ManifestRequest = ENCODED) -> ManifestEntries:
    kind = made.specs[0].partition_type(made.schema)
    return ManifestReader(made.io, remember=False).read(manifest, kind, request)


def rewritten(made: PlannedTable, *entries: ManifestEntries, version: int | None = None) -> ManifestFile:
    location = made.path("metadata/rewritten.avro")
    with ManifestWriter(made.io, location, made.specs[0], made.schema, version or made.version, 2000) as writer:
        writer.existing(ManifestEntries.concat(entries))
        return writer.close().assigned(2000, 9)


def kinds(entries: ManifestEntries) -> set[pa.DataType]:
    return {entries.columns[number].type for number in MAP_TYPES if number in entries.columns}


@pytest.mark.parametrize("count", [1, MANY])
@pytest.mark.parametrize(("old", "new"), [(1, 1), (1, 2), (2, 2), (2, 3), (3, 3)])
def test_encoded_statistics_are_the_same_in_the_next_manifest(count: int, old: int, new: int) -> None:
    made = PlannedTable(specs=[BY_DAY], format_version=old)
    files = some_files(made, count)
    manifest = made.write(files).assigned(1000, 1)
    entries = read(made, manifest)
    assert kinds(entries) == {pa.binary()}
    again = rewritten(made, entries, version=new)
    assert list(read(made, again, ManifestRequest(ALL_COLUMNS)).data_files()) == files


def test_entries_of_several_manifests_are_written_together_in_any_order() -> None:
    made = PlannedTable(specs=[BY_DAY])
    files = some_files(made, MANY)
    manifests = [made.write(some).assigned(1000, 1) for some in (files[:20], files[20:21], files[21:])]
    kind = BY_DAY.partition_type(SCHEMA)
    read_together = ManifestReader(made.io).read_together([(one, kind) for one in manifests], ENCODED, [None] * 3)
    together = ManifestEntries.concat(read_together)
    again = rewritten(made, together.take(pa.array(range(MANY)).to_numpy()[::-1].copy()))
    assert list(read(made, again, ManifestRequest(ALL_COLUMNS)).data_files()) == files[::-1]


def test_manifests_without_some_statistics_are_written_with_others() -> None:
    made = PlannedTable()
    foreign = Foreign(made)
    assert "nan_value_counts" not in FILE_FIELDS
    old = foreign.write([foreign.row(f"old-{n}", status=1) for n in range(MANY)])
    new = made.write([made.file(nan_value_counts={4: n + 1}) for n in range(MANY)]).assigned(1000, 1)
    again = rewritten(made, read(made, old), read(made, new))
    files = list(read(made, again, ManifestRequest(ALL_COLUMNS)).data_files())
    assert [file.nan_value_counts for file in files] == [*[{}] * MANY, *({4: n + 1} for n in range(MANY))]


def test_a_format_without_the_ability_gives_decoded_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AvroFormat, "abilities", frozenset({FormatAbility.SPLITS}))
    made = PlannedTable(specs=[BY_DAY])
    files = some_files(made, MANY)
    entries = read(made, made.write(files).assigned(1000, 1))
    assert kinds(entries) == {*MAP_TYPES.values()}
    assert list(read(made, rewritten(made, entries), ManifestRequest(ALL_COLUMNS)).data_files()) == files


def test_statistics_of_single_fields_are_never_encoded() -> None:
    made = PlannedTable(specs=[BY_DAY])
    manifest = made.write(some_files(made, MANY)).assigned(1000, 1)
    request = ManifestRequest(ALL_COLUMNS, {f.LOWER_BOUNDS: frozenset({1})}, encoded=True)
    entries = read(made, manifest, request)
    bounds = entries.statistic(f.LOWER_BOUNDS, 1)
    assert bounds is not None
    assert bounds[1].as_py() == struct.pack("<q", 1)


@pytest.mark.parametrize("encoded", [True, False])
def test_bytes_in_place_of_a_map_are_refused(encoded: bool) -> None:
    made = PlannedTable()
    foreign = Foreign(made, file={**FILE_FIELDS, "value_counts": (f.VALUE_COUNTS, ["null", "bytes"])})
    manifest = foreign.write([foreign.row("a", value_counts=b"\x02\x02\x02\x00")])
    with pytest.raises(InvalidMetadata, match="value_counts has type binary"):
        read(made, manifest, ManifestRequest(ALL_COLUMNS, encoded=encoded))


def test_encoded_statistics_neither_enter_the_cache_nor_come_from_it() -> None:
    made = PlannedTable(specs=[BY_DAY])
    files = some_files(made, MANY)
    manifest = made.write(files).assigned(1000, 1)
    kind = BY_DAY.partition_type(SCHEMA)
    assert kinds(ManifestReader(made.io).read(manifest, kind, ENCODED)) == {pa.binary()}
    assert list(ManifestReader(made.io).read(manifest, kind, ManifestRequest(ALL_COLUMNS)).data_files()) == files
    assert kinds(ManifestReader(made.io).read(manifest, kind, ENCODED)) == {pa.binary()}


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_the_statistics_of_a_rewritten_manifest(version: Any, tmp_path: Path) -> None:
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import ManifestFile as Theirs

    def of_pyiceberg(manifest: ManifestFile) -> list[dict[str, Any]]:
        theirs = Theirs.from_args(
            manifest_path=manifest.manifest_path,
            manifest_length=manifest.manifest_length,
            partition_spec_id=0,
            content=0,
            sequence_number=9,
            min_sequence_number=1,
            added_snapshot_id=1000,
        )
        entries = theirs.fetch_manifest_entry(PyArrowFileIO(), discard_deleted=False)
        names = [field.name for field in f.DATA_FILE_FIELDS if field.field_id in MAP_TYPES]
        return [{name: getattr(entry.data_file, name) for name in ("file_path", *names)} for entry in entries]

    made = PlannedTable(specs=[BY_DAY], format_version=version, location=f"file://{tmp_path}")
    (tmp_path / "metadata").mkdir()
    old = made.write(some_files(made, MANY)).assigned(1000, 1)
    found = of_pyiceberg(old)
    assert found[1]["lower_bounds"] == {1: struct.pack("<q", 1), 2: b"a"}
    assert of_pyiceberg(rewritten(made, read(made, old))) == found

"""Snapshots of a real table: the contents of each, the files that they share, and the chain of metadata files."""

from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.manifest import read_manifest_list
from icefield.metadata import decode_metadata


def table_with(path: Path, format_version: int, appends: int) -> Any:
    catalog = icefield.load_catalog("chain", type="directory", warehouse=path.as_uri())
    catalog.create_namespace("db")
    properties = {"format-version": str(format_version), "commit.manifest-merge.enabled": "false"}
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), properties=properties)
    for number in range(appends):
        table.append(pa.table({"id": [number]}))
    return table


def manifests(table: Any, snapshot: Any) -> list[str]:
    return [manifest.manifest_path for manifest in read_manifest_list(table.io, snapshot, table.metadata).manifests]


@pytest.mark.spec("SNAP-10", "SNAP-12", "SNAP-03", "SNAP-08", "META-01", "META-17", "META-26", "META-33", "FS-01")
@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_an_append_adds_a_manifest_and_leaves_the_old_ones_as_they_are(tmp_path, format_version):
    table = table_with(tmp_path, format_version, 2)
    first, second = table.metadata.snapshots
    held = table.metadata
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "version-hint.text"]
    before = {path: path.read_bytes() for path in files}
    table.append(pa.table({"id": [2]}))
    third = table.metadata.current_snapshot()
    for path, content in before.items():
        assert path.read_bytes() == content
    assert [s.operation.value for s in (first, second, third)] == ["append"] * 3
    assert [s.parent_snapshot_id for s in (first, second, third)] == [None, first.snapshot_id, second.snapshot_id]
    assert set(manifests(table, first)) < set(manifests(table, second)) < set(manifests(table, third))
    assert len(manifests(table, third)) == 3
    for count, snapshot in enumerate((first, second, third), 1):
        rows = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()["id"].to_pylist()
        assert sorted(rows) == list(range(count))
        assert snapshot.summary["total-records"] == str(count)
    assert len(held.snapshots) == 2
    assert len(table.metadata.snapshot_log) == 3


@pytest.mark.spec("META-01", "META-19", "META-33", "VER-13")
@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_each_change_leaves_a_whole_metadata_file_that_the_next_one_names(tmp_path, format_version):
    table = table_with(tmp_path, format_version, 3)
    folder = tmp_path / "db" / "t" / "metadata"
    files = [folder / f"v{version}.metadata.json" for version in range(1, 5)]
    chain = [decode_metadata(file.read_bytes(), file.as_uri()) for file in files]
    assert [len(metadata.snapshots) for metadata in chain] == [0, 1, 2, 3]
    assert chain[-1] == table.metadata
    for number, metadata in enumerate(chain):
        logged = [entry.metadata_file for entry in metadata.metadata_log]
        assert logged == [file.as_uri() for file in files[:number]]
        assert [e.timestamp_ms for e in metadata.metadata_log] == [m.last_updated_ms for m in chain[:number]]
        assert metadata.table_uuid == chain[0].table_uuid
    assert sorted(path.name for path in folder.glob("*.json")) == [file.name for file in files]

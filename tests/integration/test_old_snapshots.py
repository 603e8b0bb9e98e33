"""Snapshots of old v1 tables, which name their manifests themselves, when the format version is raised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import icefield
import pytest
from icefield.catalog import Catalog, Table
from icefield.errors import FileMissing
from icefield.manifest import read_manifest_list
from pyiceberg.table import StaticTable
from tables import ids, meddled, new_table, rows


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = icefield.load_catalog("old", type="directory", warehouse=f"file://{tmp_path}/wh")
    catalog.create_namespace("db")
    return catalog


def old_table(catalog: Catalog, *, keep_last: bool = False) -> Table:
    """A v1 table of three snapshots as the first writers left it: no manifest list, but the paths of the manifests."""
    table = new_table("kind", catalog=catalog, **{"format-version": "1", "commit.manifest-merge.enabled": "false"})
    for number in (1, 2, 3):
        table.append(rows([number], "a" if number < 3 else "b"))
    path = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text())
    for snapshot in table.snapshots()[: 2 if keep_last else 3]:
        manifests = read_manifest_list(table.io, snapshot, table.metadata).manifests
        stored = next(each for each in document["snapshots"] if each["snapshot-id"] == snapshot.snapshot_id)
        Path(stored.pop("manifest-list").removeprefix("file://")).unlink()
        stored["manifests"] = [manifest.manifest_path for manifest in manifests]
    path.write_text(json.dumps(document))
    return catalog.load_table(table.name())


def stored(table: Table) -> list[dict[str, Any]]:
    return json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())["snapshots"]


@pytest.mark.parametrize("as_property", [False, True])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("keep_last", [False, True])
def test_an_upgrade_writes_manifest_lists_for_them(catalog: Catalog, version: int, keep_last: bool, as_property: bool):
    table = old_table(catalog, keep_last=keep_last)
    snapshots = table.snapshots()
    assert [snapshot.manifest_list is None for snapshot in snapshots] == [True, True, not keep_last]
    if as_property:
        table.set_properties({"format-version": str(version)})
    else:
        table.transaction().upgrade_table_version(version).commit_transaction()
    assert all("manifests" not in snapshot and "manifest-list" in snapshot for snapshot in stored(table))
    table = catalog.load_table(table.name())
    for number, snapshot in enumerate(snapshots, 1):
        assert ids(table, snapshot_id=snapshot.snapshot_id) == list(range(1, number + 1))
        assert ids(table, "kind = 'a'", snapshot_id=snapshot.snapshot_id) == list(range(1, min(number, 2) + 1))
    # The first snapshot that names a manifest counts as the snapshot that added it, and the files are counted.
    lists = [read_manifest_list(table.io, snapshot, table.metadata).manifests for snapshot in table.snapshots()]
    assert [sorted(each.added_snapshot_id for each in found) for found in lists] == [
        sorted(snapshot.snapshot_id for snapshot in snapshots[:number]) for number in (1, 2, 3)
    ]
    assert {(each.added_files_count, each.added_rows_count) for found in lists for each in found} == {(1, 1)}
    if version == 2:
        peer = StaticTable.from_metadata(table.metadata_location)
        for number, snapshot in enumerate(snapshots, 1):
            read = peer.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
            assert sorted(read["id"].to_pylist()) == list(range(1, number + 1))
    table.append(rows([4]))
    table.delete("id = 1")
    assert ids(table) == [2, 3, 4]
    catalog.purge_table(table.name())


@pytest.mark.parametrize("also_upgrades", [False, True])
def test_an_upgrade_that_meets_other_commits_leaves_no_list_for_nothing(catalog: Catalog, also_upgrades: bool):
    def meddle(other: Table) -> None:
        if also_upgrades:
            other.transaction().upgrade_table_version(2).commit_transaction()
        else:
            other.append(rows([4]))

    table = meddled(old_table(catalog), meddle)
    table.transaction().upgrade_table_version(2).commit_transaction()
    assert ids(table) == ([1, 2, 3] if also_upgrades else [1, 2, 3, 4])
    assert table.format_version == 2
    assert lists_of(table) == lists_named(table)


def lists_of(table: Table) -> set[str]:
    folder = Path(table.location().removeprefix("file://")) / "metadata"
    return {path.name for path in folder.glob("snap-*.avro")}


def lists_named(table: Table) -> set[str]:
    return {str(snapshot.manifest_list).rpartition("/")[2] for snapshot in table.refresh().snapshots()}


def test_a_manifest_that_is_gone_stops_the_upgrade_and_nothing_is_left(catalog: Catalog):
    table = old_table(catalog)
    Path(table.snapshots()[0].manifests[0].removeprefix("file://")).unlink()
    with pytest.raises(FileMissing), table.transaction() as transaction:
        transaction.upgrade_table_version(2)
    assert catalog.load_table(table.name()).format_version == 1
    assert lists_of(table) == set()

"""Copies of encrypted tables under other locations: they read as the table, and are encrypted as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from encrypted_tables import FORMATS, MASTER, SCHEMA, catalog_in, clear_caches, files_of, ids, new_table, rows
from icefield.errors import DecryptionFailed

MERGE_ON_READ = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}


def copied(table, folder, **options):
    """The result of a rewrite whose files were copied, and the location of the metadata file of the copy."""
    source, target = table.location(), f"file://{folder}"
    result = table.maintenance.rewrite_table_path(source, target, **options)
    for origin, place in zip(*result.files.to_pydict().values(), strict=True):
        path = Path(place.removeprefix("file://"))
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(origin.removeprefix("file://"), path)
    return result, f"{target}/metadata/{result.latest_version}"


def registered(tmp_path, location, name="copy.t"):
    catalog = catalog_in(tmp_path, type="sql", uri=f"sqlite:///{tmp_path}/copies.db")
    if not catalog.namespace_exists("copy"):
        catalog.create_namespace("copy")
    if catalog.table_exists(name):
        catalog.drop_table(name)
    clear_caches()
    return catalog.register_table(name, location)


def contents(table):
    clear_caches()
    history = [each.snapshot_id for each in table.history()]
    return [sorted(table.scan(snapshot_id=each).to_arrow().column("id").to_pylist()) for each in history]


def changed(tmp_path, **properties):
    table = new_table(catalog_in(tmp_path), **{**MERGE_ON_READ, **properties})
    table.append(rows(0))
    table.maintenance.compute_table_stats()
    table.maintenance.compute_partition_stats()
    table.append(rows(100))
    table.delete("id in (5, 105)")
    table.encryption.rotate()
    table.delete("id = 6")
    return table


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_copy_reads_as_the_table_and_holds_no_plain_value(tmp_path, file_format):
    table = changed(tmp_path, **{"write.format.default": file_format})
    wanted, statistics = contents(table), table.inspect.partition_statistics()
    result, location = copied(table, tmp_path / "far")
    assert result.rewritten_delete_files > 0
    assert contents(table.refresh()) == wanted
    shutil.rmtree(tmp_path / "warehouse")
    moved = registered(tmp_path, location)
    assert contents(moved) == wanted
    assert moved.encryption.status().is_complete
    assert moved.inspect.partition_statistics() == statistics
    for path in files_of(tmp_path / "far"):
        data = path.read_bytes()
        assert path.suffix == ".json" or data[:4] in (b"AGS1", b"PARE"), path
        assert b"region-" not in data
        assert b"confidential-" not in data
    moved.append(rows(200))
    moved.delete("id = 7")
    assert len(ids(moved.refresh())) == 100 + 200 - 4


def test_a_file_of_the_table_does_not_open_in_its_copy(tmp_path):
    table = changed(tmp_path)
    result, location = copied(table, tmp_path / "far")
    moved = registered(tmp_path, location)
    written = [each for each in result.files.to_pylist() if each["source"].endswith(".avro")]
    assert len(written) > 4
    for each in written:
        path = Path(each["target"].removeprefix("file://"))
        origin = Path(table.location().removeprefix("file://") + each["target"].removeprefix(f"file://{tmp_path}/far"))
        kept = path.read_bytes()
        path.write_bytes(origin.read_bytes())
        clear_caches()
        with pytest.raises(DecryptionFailed):
            contents(moved)
        path.write_bytes(kept)
    assert contents(moved) == contents(table.refresh())


def test_a_later_copy_brings_few_files_of_rows_and_all_keys(tmp_path):
    table = changed(tmp_path)
    first, _ = copied(table, tmp_path / "far")
    table.append(rows(300))
    wanted = contents(table)
    second, location = copied(table, tmp_path / "far", start_version=first.latest_version)
    assert sum(path.endswith(".parquet") for path in second.files.column("target").to_pylist()) == 3
    shutil.rmtree(tmp_path / "warehouse")
    moved = registered(tmp_path, location)
    assert contents(moved) == wanted
    earlier = location.replace(second.latest_version, first.latest_version)
    assert contents(registered(tmp_path, earlier)) == wanted[:-1]


def test_plain_files_of_an_encrypted_table_stay_plain_in_its_copy(tmp_path):
    catalog = catalog_in(tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": "2", **MERGE_ON_READ})
    table.append(rows(0))
    table.delete("id = 3")
    table.set_properties({"format-version": "3", "encryption.key-id": MASTER})
    table.append(rows(100))
    wanted, status = contents(table), table.encryption.status()
    _, location = copied(table, tmp_path / "far")
    moved = registered(tmp_path, location)
    assert contents(moved) == wanted
    assert moved.encryption.status() == status
    assert 0 < status.plain_files < status.files

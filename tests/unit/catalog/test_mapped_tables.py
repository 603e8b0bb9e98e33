"""Tables opened from their metadata file, and tables whose files are not at the locations in their metadata."""

from __future__ import annotations

from pathlib import Path

import icefield
import pytest
from icefield.errors import FileMissing, NotSupportedByCatalog
from tables import ids, new_table, rows, stored_files


@pytest.mark.spec("FS-08", "COMMIT-15")
def test_a_table_is_opened_from_its_metadata_file_and_can_only_be_read():
    table = new_table()
    table.append(rows([1, 2]))
    files = stored_files(table)
    opened = icefield.open_table(table.metadata_location)
    assert ids(opened, "id > 1") == [2]
    assert opened.inspect.files().num_rows == 1
    for change in (
        lambda: opened.append(rows([3])),
        lambda: opened.delete("id = 1"),
        lambda: opened.set_properties(a=1),
        lambda: opened.update_schema().add_column("x", "int").commit(),
        opened.refresh,
    ):
        with pytest.raises(NotSupportedByCatalog, match="only be read"):
            change()
    assert stored_files(table) == files
    with pytest.raises(FileMissing):
        icefield.open_table(table.metadata_location + "x")


def test_a_table_that_was_moved_is_opened_through_a_map(tmp_path: Path):
    catalog = icefield.load_catalog("x", warehouse=str(tmp_path / "old"))
    catalog.create_namespace("db")
    table = new_table(catalog=catalog)
    table.append(rows([1]))
    (tmp_path / "old").rename(tmp_path / "new")
    moved = table.metadata_location.replace("/old/", "/new/")
    opened = icefield.open_table(moved, properties={f"location.map.{tmp_path}/old": f"{tmp_path}/new"})
    assert ids(opened) == [1]


def test_a_table_of_a_store_is_read_and_changed_in_a_copy_that_a_map_names_by_its_path(tmp_path: Path):
    given = {"warehouse": "memory://copied", "type": "directory"}
    catalog = icefield.load_catalog("x", **given, **{"location.map.memory://copied": f"{tmp_path}/c"})
    catalog.create_namespace("db")
    table = new_table(catalog=catalog)
    table.append(rows([1]))
    table.set_properties(a=1)
    assert table.location().startswith("memory://copied/")
    assert ids(table.refresh()) == [1]
    assert len(list((tmp_path / "c").rglob("*.metadata.json"))) == 3


@pytest.mark.parametrize("end", ["", "/"])
def test_a_table_made_through_a_map_keeps_its_own_locations(tmp_path: Path, end: str):
    own, there = "hdfs://nn/wh", f"file://{tmp_path}/there"
    given = {"type": "directory", "warehouse": own + end, f"location.map.{own}{end}": there + end}
    catalog = icefield.load_catalog("x", **given)
    catalog.create_namespace("db")
    table = new_table(catalog=catalog)
    table.append(rows([1]))
    table.set_properties(a=1)
    assert table.location() == f"{own}/{'/'.join(table.name())}"
    named = [entry.metadata_file for entry in table.metadata.metadata_log]
    assert len(named) == 2
    named += [table.current_snapshot().manifest_list, *table.inspect.files()["file_path"].to_pylist()]
    assert all(location.startswith(f"{table.location()}/") for location in named), named
    assert catalog.list_namespaces() == [("db",)]
    assert catalog.list_tables("db") == [table.name()]
    assert not (tmp_path / "hdfs:").exists()
    # The metadata has unmapped locations, so another map, or none, finds the table after its files have moved.
    (tmp_path / "there").rename(tmp_path / "other")
    catalog = icefield.load_catalog("x", **{**given, f"location.map.{own}{end}": f"file://{tmp_path}/other{end}"})
    assert ids(catalog.load_table(table.name())) == [1]
    catalog.drop_table(table.name(), purge=True)
    assert [path for path in (tmp_path / "other").rglob("*") if path.is_file() and ".icefield" not in path.parts] == []


def test_a_namespace_with_a_map_of_its_own_is_there(tmp_path: Path):
    given = {"warehouse": f"{tmp_path}/wh", f"location.map.{tmp_path}/wh/db": "memory://elsewhere/db"}
    catalog = icefield.load_catalog("x", **given)
    catalog.create_namespace("db", {"owner": "me"})
    table = new_table(catalog=catalog)
    table.append(rows([1]))
    assert catalog.load_namespace_properties("db") == {"owner": "me"}
    assert catalog.list_tables("db") == [table.name()]
    assert table.location() == f"{tmp_path}/wh/{'/'.join(table.name())}"
    assert not (tmp_path / "wh").exists()

"""Commits on a base that the version hint names: fewer requests, and the same outcomes when the hint is old."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from icefield import Table, load_catalog
from icefield.abc import PutMode
from icefield.builtin.memory import MemoryFileSystem
from icefield.catalog import Catalog
from icefield.errors import InvalidMetadata
from icefield.toolkit import VersionedStrategy, read_whole
from icefield.transaction import AppendFiles
from icefield.types import LongType
from icefield.writing import write_batches
from tables import SCHEMA, ids, rows

SYSTEM = MemoryFileSystem()


@pytest.fixture
def catalog() -> Catalog:
    found = load_catalog("bases", type="directory", warehouse=f"memory://bases/{uuid4().hex}")
    found.create_namespace("db")
    return found


@pytest.fixture
def table(catalog: Catalog) -> Table:
    made = catalog.create_table("db.t", SCHEMA)
    made.append(rows([1]))
    return made


def hint_of(table: Table) -> str:
    return f"{table.location()}/metadata/version-hint.text"


def left_at(table: Table, version: int) -> None:
    """What a writer leaves that was killed after its commit and before it wrote the hint."""
    SYSTEM.put(hint_of(table), str(version).encode(), PutMode.OVERWRITE)


def other_writer(catalog: Catalog) -> Table:
    return catalog.load_table("db.t")


@pytest.fixture
def stats(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files whose presence is requested."""
    asked: list[str] = []
    real = MemoryFileSystem.stat

    def noted(self: MemoryFileSystem, location: str):
        asked.append(location.rpartition("/")[2])
        return real(self, location)

    monkeypatch.setattr(MemoryFileSystem, "stat", noted)
    return asked


CHANGES: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append(rows([2])),
    "delete": lambda table: table.delete("id = 1"),
    "overwrite": lambda table: table.overwrite(rows([2]), "id = 1"),
    "upsert": lambda table: table.upsert(rows([1, 2]), join_cols=["id"]),
    "set a property": lambda table: table.set_properties({"a": "b"}),
    "add a column": lambda table: table.update_schema().add_column("more", LongType()).commit(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_checks_its_base_twice_and_one_name_of_the_next_version(
    change: str, table: Table, stats: list[str]
) -> None:
    CHANGES[change](table)
    assert stats == ["v2.metadata.json", "v3.gz.metadata.json", "v2.metadata.json"]


NOTHING_TO_CHANGE: dict[str, Callable[[Table], object]] = {
    "delete": lambda table: table.delete("id = 9"),
    "upsert": lambda table: table.upsert(rows([1]), join_cols=["id"]),
}


@pytest.mark.parametrize("change", NOTHING_TO_CHANGE)
def test_a_change_of_nothing_is_refused_once_another_table_is_at_the_same_version(
    change: str, catalog: Catalog
) -> None:
    def made() -> Table:
        table = catalog.create_table("db.again", SCHEMA)
        table.append(rows([1]))
        return table

    held = made()
    catalog.purge_table("db.again")
    assert made().metadata_location == held.metadata_location
    with pytest.raises(InvalidMetadata, match="is not the table that was loaded"):
        NOTHING_TO_CHANGE[change](held)


def test_a_change_of_nothing_leaves_the_handle_at_the_commit_that_an_old_hint_hides(
    catalog: Catalog, table: Table
) -> None:
    other = other_writer(catalog)
    other.append(rows([2]))
    left_at(table, 2)
    table.delete("id = 9")
    assert table.metadata_location == other.metadata_location
    assert ids(table) == [1, 2]


@pytest.mark.spec("COMMIT-03")
def test_an_append_on_an_old_hint_comes_after_the_commit_that_left_it(catalog: Catalog, table: Table):
    other_writer(catalog).append(rows([2]))
    left_at(table, 2)
    table.append(rows([3]))
    assert ids(catalog.load_table("db.t")) == [1, 2, 3]
    assert table.metadata_location.endswith("/v4.metadata.json")


def test_a_delete_on_an_old_hint_finds_the_rows_of_the_commit_that_left_it(catalog: Catalog, table: Table):
    other_writer(catalog).append(rows([2]))
    left_at(table, 2)
    table.delete("id = 2")
    assert ids(catalog.load_table("db.t")) == [1]


def test_an_old_hint_does_not_make_an_error_of_a_change_that_is_valid(catalog: Catalog, table: Table):
    other_writer(catalog).append(rows([2]))
    snapshot = other_writer(catalog).current_snapshot()
    assert snapshot is not None
    left_at(table, 2)
    table.manage_snapshots().create_tag(snapshot.snapshot_id, "later").commit()
    assert catalog.load_table("db.t").metadata.refs["later"].snapshot_id == snapshot.snapshot_id


def test_a_commit_finds_the_next_version_under_the_old_compressed_name_of_its_base(catalog: Catalog):
    strategy = catalog.create_table("db.old", SCHEMA)._handle.strategy
    assert isinstance(strategy, VersionedStrategy)
    data = read_whole(SYSTEM, f"{strategy.folder}/v1.metadata.json")
    SYSTEM.delete_many([f"{strategy.folder}/v1.metadata.json"])
    SYSTEM.put(f"{strategy.folder}/v1.metadata.json.gz", data, PutMode.CREATE)
    table = catalog.load_table("db.old")
    SYSTEM.put(f"{strategy.folder}/v2.metadata.json.gz", data, PutMode.CREATE)
    table.append(rows([1]))
    assert table.metadata_location.endswith("/v3.metadata.json")


def test_a_purged_table_stays_away_though_a_writer_still_holds_it(catalog: Catalog, table: Table):
    location = table.location()
    catalog.purge_table("db.t")
    with pytest.raises(Exception, match=r"db\.t"):
        table.append(rows([2]))
    assert not [found for found in SYSTEM.list_files(location) if "/v" in found.location]


def test_an_append_on_an_old_hint_goes_to_the_branch_of_the_commit_that_left_it(catalog: Catalog, table: Table) -> None:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    other_writer(catalog).manage_snapshots().create_branch(snapshot.snapshot_id, "audit").commit()
    left_at(table, 2)
    table.append(rows([2]), branch="audit")
    assert ids(catalog.load_table("db.t"), ref="audit") == [1, 2]


def test_an_append_on_an_old_hint_takes_files_of_a_spec_of_the_commit_that_left_it(
    catalog: Catalog, table: Table
) -> None:
    other = other_writer(catalog)
    other.update_spec().add_field("id", "bucket[2]", "part").commit()
    files = write_batches(other.write_context(), rows([2]).to_batches())
    left_at(table, 2)
    with table.transaction() as changes:
        changes.append_files(files)
    assert ids(catalog.load_table("db.t")) == [1, 2]


def test_an_append_on_an_old_hint_takes_a_file_that_the_commit_that_left_it_removed(
    catalog: Catalog, table: Table
) -> None:
    given = [task.file for task in table.scan().plan_files()]
    other_writer(catalog).delete("id = 1")
    left_at(table, 2)
    with table.transaction() as changes:
        AppendFiles(changes.stage).append_file(*given).commit()
    assert ids(catalog.load_table("db.t")) == [1]


@pytest.mark.parametrize("name", ["commit.retry.num-retries", "commit.retry.total-timeout-ms"])
def test_an_old_hint_takes_no_retry_of_an_append_that_may_not_retry(catalog: Catalog, name: str) -> None:
    table = catalog.create_table("db.once", SCHEMA, properties={name: "0"})
    table.append(rows([1]))
    catalog.load_table("db.once").append(rows([2]))
    left_at(table, 2)
    table.append(rows([3]))
    assert ids(catalog.load_table("db.once")) == [1, 2, 3]


def test_a_location_that_a_directory_catalog_uses_again_can_be_registered_again(tmp_path: Path) -> None:
    place = f"file://{tmp_path}/tables"
    folders = load_catalog("folders", type="directory", warehouse=place)
    metastore = load_catalog("metastore", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=place)
    found = []
    for catalog in (folders, metastore):
        catalog.create_namespace("db")
    for number in (1, 2):
        table = folders.create_table("db.t", SCHEMA)
        table.append(rows([number]))
        metastore.register_table("db.registered", table.metadata_location)
        found += ids(metastore.load_table("db.registered"))
        metastore.drop_table("db.registered")
        folders.purge_table("db.t")
    assert found == [1, 2]


def test_a_handle_does_not_stay_at_a_registered_location_that_names_another_table_now(tmp_path: Path) -> None:
    place = f"file://{tmp_path}/tables"
    folders = load_catalog("folders", type="directory", warehouse=place)
    metastore = load_catalog("metastore", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=place)
    for catalog in (folders, metastore):
        catalog.create_namespace("db")
    held = metastore.register_table("db.registered", folders.create_table("db.t", SCHEMA).metadata_location)
    metastore.drop_table("db.registered")
    folders.purge_table("db.t")
    metastore.register_table("db.registered", folders.create_table("db.t", SCHEMA).metadata_location)
    with pytest.raises(InvalidMetadata, match="is not the table that was loaded"):
        held.refresh()

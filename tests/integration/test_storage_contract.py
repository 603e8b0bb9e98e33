"""The abilities that tables need of storage, shown on test doubles with no other ability."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import icefield
import pyarrow as pa
import pytest
import storage_doubles
from icefield.builtin.memory import MemoryFileSystem
from icefield.catalog import Catalog, Table
from icefield.errors import CommitFailed, IcefieldError, UnsafeCommit
from icefield.manifest import clear_caches
from icefield.plugins import Plugins
from icefield.writing import WriteContext, write_batches
from storage_doubles import PLUGIN, FailingFileSystem, StrictFileSystem
from tables import EAGER, SCHEMA, ids, live_files, rows, stored_files, strategy_of

CATALOGS = ("create", "rename", "sql")


def open_catalog(kind: str, folder: Path, scheme: str = "strict", name: str | None = None) -> Catalog:
    plugins = Plugins.installed(extra=[PLUGIN])
    scheme = "renaming" if kind == "rename" and scheme == "strict" else scheme
    warehouse = f"{scheme}://{name or uuid.uuid4().hex}"
    if kind == "sql":
        return icefield.load_catalog("x", plugins=plugins, uri=f"sqlite:///{folder}/c.db", warehouse=warehouse)
    return icefield.load_catalog("x", plugins=plugins, type="directory", warehouse=warehouse, commit=kind)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    StrictFileSystem.written.clear()
    StrictFileSystem.calls.clear()
    FailingFileSystem.fail = staticmethod(lambda name, location, count: False)
    FailingFileSystem.count = 0
    FailingFileSystem.trace.clear()
    yield
    FailingFileSystem.fail = staticmethod(lambda name, location, count: False)


def everything(table: Table) -> None:
    """One change of every kind."""
    table.append(pa.concat_tables([rows([1, 2], "a"), rows([3], "b")]))
    table.append(rows([4, 5], "a"))
    table.delete("id = 1")
    table.overwrite(rows([6], "c"), "kind = 'b'")
    table.dynamic_partition_overwrite(rows([7], "c"))
    old = [task.file for task in table.scan("kind = 'a'").plan_files()]
    new = write_batches(WriteContext.from_metadata(table.metadata, table.io), rows([2, 4, 5], "a"))
    table.update_snapshot().rewrite().delete_file(*old).add_file(*new).commit()
    with table.transaction() as tx:
        tx.update_schema().add_column("more", "int").commit()
        tx.update_spec().add_field("id", "bucket[2]").commit()
        tx.append(pa.table({"id": [8], "kind": ["d"]}))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "v1").commit()
    for number in range(9, 13):
        table.append(pa.table({"id": [number], "kind": ["e"]}))


@pytest.mark.spec("FS-01", "FS-04", "FS-05", "FS-06", "FS-10", "FS-13")
@pytest.mark.parametrize("kind", CATALOGS)
def test_nothing_is_overwritten_moved_listed_or_patched(kind: str, tmp_path: Path):
    catalog = open_catalog(kind, tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", SCHEMA, partition_spec="kind", properties={**EAGER, "commit.manifest.min-count-to-merge": "3"}
    )
    everything(table)
    clear_caches()
    loaded = catalog.load_table("db.t")
    assert ids(loaded) == [2, 4, 5, 7, 8, 9, 10, 11, 12]
    assert ids(loaded, "kind = 'a'") == [2, 4, 5]
    assert loaded.inspect.files().num_rows == len(list(loaded.scan().plan_files()))
    assert live_files(loaded) <= stored_files(loaded)
    assert max(StrictFileSystem.written.values()) == 1
    if kind == "rename":
        assert (
            StrictFileSystem.calls["rename"] == len(loaded.metadata.metadata_log) + 1 + 1
        )  # each version, and the namespace


@pytest.mark.spec("FS-01", "MAN-01")
def test_no_byte_of_a_file_changes_after_it_was_written(tmp_path: Path):
    catalog = open_catalog("sql", tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, partition_spec="kind", properties=EAGER)
    table.append(rows([1, 2]))
    before = {name: MemoryFileSystem.files[name] for name in stored_files(table)}
    everything(table)
    assert {name: MemoryFileSystem.files[name] for name in before} == before


@pytest.mark.spec("FS-03")
def test_a_file_that_is_not_there_may_be_deleted(tmp_path: Path):
    catalog = open_catalog("sql", tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties=EAGER)
    table.append(rows([1]))
    for name in [task.file.file_path for task in table.scan().plan_files()]:
        del MemoryFileSystem.files[name]
    catalog.drop_table("db.t", purge=True)
    assert stored_files(table) == set()
    table.io.delete_many([table.metadata_location, table.metadata_location])


@pytest.mark.spec("FS-08", "COMMIT-15", "META-26")
def test_a_reader_writes_nothing_while_others_commit(tmp_path: Path):
    catalog = open_catalog("create", tmp_path, "memory")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, partition_spec="kind", properties=EAGER)
    everything(table)
    mapped = {
        f"location.map.{catalog.properties['warehouse']}": catalog.properties["warehouse"].replace(
            "memory:", "readonly:"
        )
    }
    # The mount shows the same files under another scheme.
    for name in stored_files(table):
        MemoryFileSystem.files[name.replace("memory:", "readonly:")] = MemoryFileSystem.files[name]
    plugins = Plugins.installed(extra=[PLUGIN])
    reader = icefield.open_table(table.metadata_location, mapped, plugins=plugins)
    batches = reader.scan("id > 2").to_arrow_batch_reader()
    before = ids(reader)
    table.overwrite(pa.table({"id": [100], "kind": ["x"]}))
    assert sorted(batches.read_all()["id"].to_pylist()) == [number for number in before if number > 2]
    assert ids(reader) == before
    assert reader.inspect.entries().num_rows > 0


@pytest.mark.slow
@pytest.mark.spec("FS-13", "FS-14", "COMMIT-02")
@pytest.mark.parametrize("kind", ["create", "sql"])
@pytest.mark.parametrize("change", ["append", "delete", "overwrite"])
def test_whatever_step_of_a_commit_fails_the_table_is_whole_and_nothing_is_left_over(
    kind: str, change: str, tmp_path: Path
):
    changes: dict[str, Callable[[Table], None]] = {
        "append": lambda table: table.append(rows([9], "b")),
        "delete": lambda table: table.delete("id = 1"),
        "overwrite": lambda table: table.overwrite(rows([9], "b"), "id = 1"),
    }
    outcomes = {"append": [1, 2, 9], "delete": [2], "overwrite": [2, 9]}
    step = 0
    while True:
        step += 1
        FailingFileSystem.fail = staticmethod(lambda name, location, count: False)
        catalog = open_catalog(kind, tmp_path, "failing", f"{kind}{change}{step}")
        catalog.create_namespace_if_not_exists("db")
        table = catalog.create_table(f"db.t{step}", SCHEMA, properties=EAGER)
        table.append(rows([1, 2]))
        FailingFileSystem.count = 0
        failing = step
        FailingFileSystem.fail = staticmethod(lambda name, location, count, failing=failing: count == failing)
        failed = None
        try:
            changes[change](table)
        except IcefieldError as error:
            failed = error
        steps = FailingFileSystem.count
        FailingFileSystem.fail = staticmethod(lambda name, location, count: False)
        clear_caches()
        found = catalog.load_table(f"db.t{step}")
        assert ids(found) == ([1, 2] if failed is not None else outcomes[change])
        assert live_files(found) <= stored_files(found)
        left = stored_files(found) - live_files(found) - {f"{found.location()}/metadata/version-hint.text"}
        # If a deletion itself fails, only the files of that deletion stay.
        deleting = [location for name, location in FailingFileSystem.trace[-steps:] if name == "delete_many"]
        assert left <= set(",".join(deleting).split(",")) if deleting else left == set()
        if step > steps:
            break
        FailingFileSystem.trace.clear()
    assert step > 5


@pytest.mark.spec("FS-14")
def test_everything_that_a_version_names_is_complete_before_the_version_is_published(tmp_path: Path):
    catalog = open_catalog("create", tmp_path, "failing")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties=EAGER)
    FailingFileSystem.trace.clear()
    table.append(rows([1]))
    done = [location.rpartition(".")[2] for name, location in FailingFileSystem.trace if name in ("close", "put")]
    assert done == ["parquet", "avro", "avro", "json", "text"]


@pytest.mark.spec("FS-10", "COMMIT-01", "COMMIT-05")
def test_two_catalogs_over_one_database_race_and_the_loser_gets_a_conflict(tmp_path: Path):
    one = open_catalog("sql", tmp_path, name="shared")
    two = open_catalog("sql", tmp_path, name="shared")
    one.create_namespace("db")
    one.create_table("db.t", SCHEMA, properties={**EAGER, "commit.retry.num-retries": "0"})
    first, second = one.load_table("db.t"), two.load_table("db.t")
    strategy = strategy_of(second)
    original = type(strategy).swap_pointer

    def late(self, old, new, proposal):
        if self is strategy and not first.snapshots():
            first.append(rows([1]))
        return original(self, old, new, proposal)

    type(strategy).swap_pointer = late
    try:
        with pytest.raises(CommitFailed):
            second.append(rows([2]))
    finally:
        type(strategy).swap_pointer = original
    assert ids(two.load_table("db.t")) == [1]
    second.refresh().append(rows([3]))
    assert ids(first.refresh()) == [1, 3]
    names = [name.rpartition("/")[2] for name in stored_files(first) if name.endswith(".metadata.json")]
    assert sorted(name.split("-")[0] for name in names) == ["00000", "00001", "00002"]


@pytest.mark.spec("FS-11")
def test_a_strategy_is_refused_on_storage_that_cannot_keep_its_promise():
    plugins = Plugins.installed(extra=[PLUGIN])
    with pytest.raises(UnsafeCommit, match="create"):
        icefield.load_catalog("x", plugins=plugins, type="directory", warehouse="strict://x", commit="rename")


@pytest.mark.spec("FS-15")
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_location_without_a_scheme_is_resolved_with_the_tables_own(version: str, tmp_path: Path):
    catalog = open_catalog("sql", tmp_path, "strict", f"host{version}")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={**EAGER, "format-version": version})
    (file,) = write_batches(WriteContext.from_metadata(table.metadata, table.io), rows([1, 2]))
    bare = file.file_path.split("://", 1)[1].partition("/")[2]
    table.update_snapshot().fast_append().append_file(replace(file, file_path=f"/{bare}")).commit()
    assert ids(catalog.load_table("db.t")) == [1, 2]
    assert [task.file.file_path for task in table.scan().plan_files()] == [f"/{bare}"]


@pytest.mark.spec("FS-15")
def test_a_relative_location_is_rejected(tmp_path: Path):
    catalog = open_catalog("sql", tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties=EAGER)
    (file,) = write_batches(WriteContext.from_metadata(table.metadata, table.io), rows([1]))
    table.update_snapshot().fast_append().append_file(replace(file, file_path="data/f.parquet")).commit()
    with pytest.raises(IcefieldError, match="relative"):
        table.scan().to_arrow()


@pytest.mark.spec("FS-07", "FS-02")
def test_a_commit_opens_a_few_files_however_many_the_table_has(tmp_path: Path):
    catalog = open_catalog("sql", tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={**EAGER, "commit.manifest.min-count-to-merge": "10"})

    def opened() -> tuple[int, int]:
        StrictFileSystem.calls.clear()
        clear_caches()
        loaded = catalog.load_table("db.t")
        loaded.append(rows([1]))
        return StrictFileSystem.calls["open_input"], StrictFileSystem.calls["open_output"]

    few = opened()
    for _ in range(25):
        table.refresh().append(rows([1]))
    many = opened()
    assert many[0] <= few[0] + 1  # the manifest list
    assert many[1] == few[1]


def test_the_doubles_do_refuse():
    system = StrictFileSystem()
    system.open_output("strict://x/a").close()
    with pytest.raises(storage_doubles.Forbidden):
        system.open_output("strict://x/a")
    with pytest.raises(storage_doubles.Forbidden):
        system.rename("strict://x/a", "strict://x/b")
    with pytest.raises(storage_doubles.Forbidden):
        list(system.list_files("strict://x/db/t"))

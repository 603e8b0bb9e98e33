"""Tables of one catalog that come, move and go at random, and a judge of which files each of them may lose.

The judge knows nothing of locations. It sees all files before and after each step. A file belongs to the table that
made the step in which it appeared, by its uuid; so it may only vanish in a step of that table. Afterwards all files of
every snapshot of every table are looked for, but for those of other tables that it had taken in by ``add_files``.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Protocol

import pyarrow as pa
from icefield import Catalog, Table, clear_caches
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import (
    CommitFailed,
    FileMissing,
    InvalidArgument,
    LocationWarning,
    NotSupportedByCatalog,
    TableExists,
    UnsupportedFeature,
)
from icefield.metadata.file_names import version_of

NAMES = ("db.a", "db.b", "db.c", "other.a")
SCHEMA = pa.schema([("id", pa.int64())])
DAY_MS = 86_400_000
REFUSED = (InvalidArgument, TableExists, UnsupportedFeature, NotSupportedByCatalog, CommitFailed)


class Files(Protocol):
    """All files below a folder, and how they get old."""

    root: str

    def all(self) -> set[str]:
        """Their locations."""

    def age(self) -> None:
        """Let all be ten days old."""


class FilesInMemory:
    """Those of the file system in memory below a root."""

    def __init__(self, root: str) -> None:
        self.root = root

    def all(self) -> set[str]:
        """Their locations."""
        return {each for each in MemoryFileSystem.files if each.startswith(f"{self.root}/")}

    def age(self) -> None:
        """Let all be ten days old."""
        then = time.time_ns() // 1_000_000 - 10 * DAY_MS
        for each in self.all():
            MemoryFileSystem.files[each] = (MemoryFileSystem.files[each][0], then)


class FilesOnDisk:
    """Those of a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.root = f"file://{folder}"

    def all(self) -> set[str]:
        """Their locations."""
        return {f"file://{each}" for each in self._folder.rglob("*") if each.is_file()}

    def age(self) -> None:
        """Let all be ten days old."""
        then = time.time() - 10 * 86_400
        for each in self._folder.rglob("*"):
            if each.is_file():
                os.utime(each, (then, then))


class LocationLife:
    """One life: a catalog, its random steps, and the judge."""

    def __init__(self, catalog: Catalog, files: Files, seed: int) -> None:
        self.catalog, self.files, self.random = catalog, files, Random(seed)
        self.writer: dict[str, str | None] = {}
        self.steps: list[str] = []
        self.done: Counter[str] = Counter()
        self.dropped: list[str] = []
        """Metadata files of tables that were dropped and not purged."""
        self.taken: dict[str, set[str]] = {}
        """By uuid, the files of others that a table took in."""
        self._rows = 0
        self._is_directory = catalog.properties.get("type") == "directory"
        for namespace in ("db", "other"):
            catalog.create_namespace_if_not_exists(namespace)

    def live(self, steps: int) -> None:
        """Make steps, and judge each."""
        moves: list[Callable[[], str | None]] = [
            self._create, self._create, self._create, self._append, self._append, self._append, self._overwrite,
            self._overwrite, self._rename, self._rename, self._replace, self._register, self._drop, self._purge,
            self._orphans, self._orphans, self._orphans, self._expire, self._expire, self._add_files,
            self._set_data_path, self._move, self._compact,
        ]  # fmt: skip
        for _ in range(steps):
            move = self.random.choice(moves)
            self.steps.append(f"{move.__name__[1:]}")
            before = self.files.all()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LocationWarning)
                try:
                    actor = move()
                    self.done[move.__name__[1:]] += 1
                except REFUSED as error:
                    self.steps[-1] += f" refused: {error}"
                    self.done["refused"] += 1
                    actor = self._actor
            self._judge(before, actor)
            self.files.age()

    # -- the judge --------------------------------------------------------------------------------------------------

    def _judge(self, before: set[str], actor: str | None) -> None:
        after = self.files.all()
        for each in after - before:
            self.writer[each] = actor
        for each in before - after:
            if self._is_directory and version_of(each) is not None:
                continue  # purging frees the versions of a path, those of a table that was dropped there among them
            owner = self.writer.get(each)
            assert owner == (actor or ""), self._said(f"{actor} deleted {each} of {owner}")
        clear_caches()
        for table in self._tables():
            uuid = table.metadata.table_uuid
            allowed = self.taken.get(str(uuid), set())
            lost = {each for each in named_by(table) if each not in after} - allowed
            assert not lost, self._said(f"{table.name()} lost {sorted(lost)}")

    def _said(self, what: str) -> str:
        return "\n".join([*self.steps, what])

    def _tables(self) -> Iterator[Table]:
        for namespace in ("db", "other"):
            for name in self.catalog.list_tables(namespace):
                try:
                    yield self.catalog.load_table(name)
                except FileMissing as error:
                    raise AssertionError(self._said(f"{name} lost its metadata: {error}")) from error

    # -- the steps --------------------------------------------------------------------------------------------------

    _actor: str | None = None

    def _some(self, but: Table | None = None) -> Table:
        self._actor = None
        tables = [each for each in self._tables() if but is None or each.name() != but.name()]
        if not tables:
            raise InvalidArgument("there is no table")
        return self._as_actor(self.random.choice(tables))

    def _as_actor(self, table: Table) -> Table:
        self._actor = str(table.metadata.table_uuid)
        self.steps[-1] += f" {'.'.join(table.name())} at {table.location()}"
        return table

    def _other(self, table: Table) -> Table:
        """Another table, which is not the one that acts."""
        tables = [each for each in self._tables() if each.name() != table.name()]
        if not tables:
            raise InvalidArgument("there is no other table")
        return self.random.choice(tables)

    def _place(self) -> str | None:
        """A location that is free, another table's, in one, around one, or shared."""
        tables = [*self._tables()]
        there = self.random.choice(tables).location() if tables else f"{self.files.root}/x"
        return self.random.choice(
            [
                None, None, None, f"{self.files.root}/loc{self.random.randrange(3)}", there, f"{there}/",
                f"{there}/data", f"{there}/data/inner", f"{there}/inner", f"{there}/metadata", there.rpartition("/")[0],
            ]
        )  # fmt: skip

    def _properties(self) -> dict[str, str]:
        shared = f"{self.files.root}/shared"
        return self.random.choice(
            [
                {}, {}, {}, {"write.data.path": shared}, {"write.metadata.path": f"{shared}/meta"},
                {"write.data.path": shared, "write.object-storage.enabled": "true"},
                {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"},
            ]
        )  # fmt: skip

    def _create(self) -> str | None:
        self._actor = None
        name, place, properties = self.random.choice(NAMES), self._place(), self._properties()
        if self._is_directory:  # which finds a table by its path, and its versions in one folder
            place, properties = None, self.random.choice([{}, {"write.data.path": f"{self.files.root}/shared"}])
        self.steps[-1] += f" {name} at {place} with {properties}"
        table = self.catalog.create_table(name, SCHEMA, location=place, properties=properties)
        return str(table.metadata.table_uuid)

    def _batch(self) -> pa.Table:
        self._rows += 1
        return pa.table({"id": [self._rows]}, schema=SCHEMA)

    def _append(self) -> str | None:
        self._some().append(self._batch())
        return self._actor

    def _overwrite(self) -> str | None:
        self._some().overwrite(self._batch())
        return self._actor

    def _rename(self) -> str | None:
        table, name = self._some(), self.random.choice(NAMES)
        self.steps[-1] += f" to {name}"
        self.catalog.rename_table(table.name(), name)
        return self._actor

    def _replace(self) -> str | None:
        table, place = self._some(), self._place()
        self.steps[-1] += f" to {place}"
        with self.catalog.replace_table_transaction(table.name(), SCHEMA, location=place) as tx:
            tx.append(self._batch())
        return self._actor

    def _move(self) -> str | None:
        table, place = self._some(), self._place()
        self.steps[-1] += f" to {place}"
        with table.transaction() as tx:
            tx.update_location(place or f"{self.files.root}/moved{self.random.randrange(3)}")
        return self._actor

    def _set_data_path(self) -> str | None:
        table, other = self._some(), self._other(self._some())
        path = self.random.choice([f"{self.files.root}/shared", f"{other.location()}/data", other.location()])
        self.steps[-1] += f" to {path}"
        self._as_actor(table).set_properties({"write.data.path": path})
        return self._actor

    def _register(self) -> str | None:
        name = self.random.choice(NAMES)
        tables = [*self._tables()]
        choices = [*self.dropped, *(each.metadata_location for each in tables)]
        if not choices:
            raise InvalidArgument("there is nothing to register")
        location = self.random.choice(choices)
        self.steps[-1] += f" {name} from {location}"
        if location not in self.files.all():
            raise InvalidArgument("it was purged")
        self._actor = None
        table = self.catalog.register_table(name, location)
        return str(table.metadata.table_uuid)

    def _drop(self) -> str | None:
        table = self._some()
        self.catalog.drop_table(table.name())
        self.dropped.append(table.metadata_location)
        return self._actor

    def _purge(self) -> str | None:
        table = self._some()
        self.catalog.drop_table(table.name(), purge=True)
        return self._actor

    def _orphans(self) -> str | None:
        table = self._some()
        place = self.random.choice([None, None, f"{self.files.root}/shared", self._place()])
        self.steps[-1] += f" in {place}"
        table.maintenance.remove_orphan_files(location=place, dry_run=False)
        return self._actor

    def _expire(self) -> str | None:
        self._some().maintenance.expire_snapshots(older_than=time.time_ns() // 1_000_000 + DAY_MS, retain_last=1)
        return self._actor

    def _compact(self) -> str | None:
        table = self._some()
        table.maintenance.rewrite_data_files(rewrite_all=True)
        table.maintenance.expire_snapshots(older_than=time.time_ns() // 1_000_000 + DAY_MS, retain_last=1)
        return self._actor

    def _add_files(self) -> str | None:
        table = self._some()
        other = self._other(table)
        files = [*dict.fromkeys(other.inspect.files()["file_path"].to_pylist())]
        self.steps[-1] += f" of {other.name()}"
        if files:
            table.add_files(files)
            foreign = {each for each in map(stated, files) if self.writer.get(each) != self._actor}
            self.taken.setdefault(str(self._actor), set()).update(foreign)
        return self._actor


def stated(location: str) -> str:
    """A location in the form in which files are listed here."""
    scheme, _, path = location.partition("://")
    while "//" in path:
        path = path.replace("//", "/")
    return f"{scheme}://{path}"


def named_by(table: Table) -> set[str]:
    """The files that the snapshots of a table need, its current metadata file, and those that lead to them."""
    found = {table.metadata_location or ""}
    for snapshot in table.snapshots():
        try:
            found.add(snapshot.manifest_list or "")
            manifests = table.inspect.manifests(snapshot.snapshot_id)
            found.update(manifests["path"].to_pylist())
            found.update(table.inspect.files(snapshot.snapshot_id)["file_path"].to_pylist())
        except FileMissing as error:
            found.add(str(error.data.get("location", error)))
    return {stated(each) for each in found if each}


def kinds(lives: list[LocationLife]) -> dict[str, Any]:
    """How often each step was done, and refused."""
    return dict(sum((life.done for life in lives), Counter[str]()))

"""A judge of the files and rows that the tables of one catalog may lose, for ``location_life``.

The judge ignores the locations of tables. It sees all files before and after each step. A file belongs to the table
that made the step in which it appeared, by its uuid; so it may only vanish in a step of that table, or once that table
is purged: a REST service leaves files of a purged table that are outside of its warehouse. After a step the judge looks
for all files of every snapshot of every table, and reads every new snapshot and every snapshot of a changed table. A
table may lose only files of other tables that it had taken in by ``add_files``.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from icefield import Catalog, Table, clear_caches
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import FileMissing
from icefield.metadata.file_names import VERSION_HINT, version_of

DAY_MS = 86_400_000
Rows = tuple[int, ...]
Version = tuple[str, str, int]


class Files(Protocol):
    """All files below a folder, with a method that makes them old."""

    root: str

    def all(self) -> set[str]:
        """Their locations."""

    def age(self) -> None:
        """Make all files ten days old."""

    def rows(self, location: str) -> Sequence[int]:
        """The ids in a data file, as pyarrow alone reads them."""


class FilesInMemory:
    """The files of the file system in memory below a root."""

    def __init__(self, root: str) -> None:
        self.root = root

    def all(self) -> set[str]:
        """Their locations."""
        return {each for each in MemoryFileSystem.files if each.startswith(f"{self.root}/")}

    def age(self) -> None:
        """Make all files ten days old."""
        then = time.time_ns() // 1_000_000 - 10 * DAY_MS
        for each in self.all():
            MemoryFileSystem.files[each] = (MemoryFileSystem.files[each][0], then)

    def rows(self, location: str) -> Sequence[int]:
        """The ids in a data file."""
        return _ids(pa.BufferReader(MemoryFileSystem.files[location][0]))


class FilesOnDisk:
    """The files of a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.root = f"file://{folder}"

    def all(self) -> set[str]:
        """Their locations."""
        return {f"file://{each}" for each in self._folder.rglob("*") if each.is_file()}

    def age(self) -> None:
        """Make all files ten days old."""
        then = time.time() - 10 * 86_400
        for each in self._folder.rglob("*"):
            if each.is_file():
                os.utime(each, (then, then))

    def rows(self, location: str) -> Sequence[int]:
        """The ids in a data file."""
        return _ids(location.removeprefix("file://"))


def _ids(source: pa.BufferReader | str) -> Sequence[int]:
    found: list[int] = pq.read_table(source, columns=["id"], partitioning=None)["id"].to_pylist()
    return found


class LocationJudge:
    """Records the table that owns each file, and the rows of each snapshot."""

    def __init__(self, catalog: Catalog, files: Files, namespaces: Sequence[str]) -> None:
        self._catalog, self._files, self._namespaces = catalog, files, namespaces
        self._writer: dict[str, str | None] = {}
        self._named: dict[Version, set[str]] = {}
        self._versions: dict[str, Version] = {}
        """The version of each table, by the table's name."""
        self.freed: str | None = None
        """The folder of the metadata versions that the next step frees, also of a dropped table at the same path."""
        self.rows: dict[int | None, Rows] = {None: ()}
        """The rows of each snapshot."""
        self.taken: dict[str, set[str]] = {}
        """By uuid, the files of others that a table took in."""
        self._purged: set[str] = set()
        """The uuids of purged tables: files that a purge left may vanish later."""
        self.deleted: Counter[str] = Counter()
        """How many files each kind of step deleted."""

    def tables(self) -> Iterator[Table]:
        """Each table of the catalog."""
        for namespace in self._namespaces:
            for name in self._catalog.list_tables(namespace):
                try:
                    yield self._catalog.load_table(name)
                except FileMissing as error:
                    raise AssertionError(f"{name} lost its metadata: {error}") from error

    def judge(
        self, step: str, before: set[str], actor: str | None, names: Sequence[str], ends: tuple[Rows, Rows | None]
    ) -> None:
        """Compare the state after a step with the state before.

        ``actor`` is the uuid of the table that made the step, ``names`` the tables that it may change. ``ends`` are the
        table's rows before and after the step; the rows after it are None if the step was refused.
        """
        after = self._files.all()
        for each in after - before:
            self._writer[each] = actor
        for each in before - after:
            owner = self._writer.get(each)
            folder, _, name = each.rpartition("/")
            if folder == self.freed and (name == VERSION_HINT or version_of(each) is not None):
                continue
            assert owner == (actor or "") or owner in self._purged, f"{actor} deleted {each} of {owner}"
            self.deleted[step] += 1
        self.freed = None
        clear_caches()
        if step == "purge" and actor is not None and ends[1] is not None:
            self._purged.add(actor)
        there = {}
        for table in self.tables():
            name, version = ".".join(table.name()), version_at(table)
            there[name] = version
            self._purged.discard(version[1])
            lost = self._lost(table, after)
            if version == self._versions.get(name):
                continue
            assert name in names, f"{name} was changed by a step of {names}"
            self._read(table, lost, ends, again=False)
            if ends[1] is not None and not lost:
                found = self.rows[table.metadata.current_snapshot_id]
                assert found == ends[1], f"{name} has {found}, and not {ends[1]}"
        gone = self._versions.keys() - there.keys() - set(names)
        assert not gone, f"{gone} are gone after a step of {names}"
        self._versions = there

    def judge_the_end(self) -> Iterator[tuple[Table, Rows]]:
        """Read every snapshot of every table; give the tables that lost nothing, with their rows."""
        after = self._files.all()
        for table in self.tables():
            lost = self._lost(table, after)
            self._read(table, lost, ((), None), again=True)
            if not lost:
                yield table, self.rows[table.metadata.current_snapshot_id]

    def lacks_files(self, uuid: str | None) -> bool:
        """Whether a table lost files that it had taken in from others."""
        return not self.taken.get(str(uuid), set()) <= self._files.all()

    def take(self, uuid: str, files: Sequence[str]) -> None:
        """Note the files of others that a table takes in."""
        foreign = {each for each in map(stated, files) if self._writer.get(each) != uuid}
        self.taken.setdefault(uuid, set()).update(foreign)

    def _lost(self, table: Table, after: set[str]) -> set[str]:
        """The files that a table had taken in and lost. All others are there."""
        version = version_at(table)
        if version not in self._named:
            self._named[version] = named_by(table)
        lost = self._named[version] - after
        wrong = lost - self.taken.get(str(table.metadata.table_uuid), set())
        assert not wrong, f"{table.name()} lost {sorted(wrong)}"
        return lost

    def _read(self, table: Table, lost: set[str], ends: tuple[Rows, Rows | None], *, again: bool) -> None:
        for snapshot in table.snapshots():
            if not again and snapshot.snapshot_id in self.rows:
                continue
            if lost:  # its new snapshots are of steps that read none of the files that are lost
                self.rows.setdefault(snapshot.snapshot_id, ends[0] if ends[1] is None else ends[1])
                continue
            ids = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()["id"].to_pylist()
            found = tuple(sorted(ids))
            known = self.rows.get(snapshot.snapshot_id)
            allowed = ends if known is None else (known,)
            assert found in allowed, f"snapshot {snapshot.snapshot_id} of {table.name()} has {found}, not {allowed}"
            self.rows[snapshot.snapshot_id] = found


def version_at(table: Table) -> Version:
    """The identity of a table's version: in a directory, names are free again after a purge."""
    return table.metadata_location, str(table.metadata.table_uuid), table.metadata.last_updated_ms


def stated(location: str) -> str:
    """A location in the form in which files are listed here."""
    scheme, _, path = location.partition("://")
    while "//" in path:
        path = path.replace("//", "/")
    return f"{scheme}://{path}"


def named_by(table: Table) -> set[str]:
    """Return a table's current metadata file, and all files of its snapshots: manifest lists, manifests, content."""
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

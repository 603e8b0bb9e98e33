"""A course of events with maintenance: snapshots expire and orphans are removed, by clocks that are wrong.

Writers stall between writing their files and the commit, for less than the safe age. No file of the current version may
be deleted, and no file that a writer commits later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar

import icefield.metadata.timestamps
import icefield_maintenance.orphans.clock
import pytest
from icefield import Plugins, Provider, Table, hookimpl
from icefield.abc import CommitStrategy, FileInfo, FileSystemAbility, OutputStream, Proposal, PutMode
from icefield.builtin.memory import MemoryFileSystem
from icefield.commit import TableHandle, load_table
from icefield.errors import CommitFailed, CommitStateUnknown, FileMissing, IcefieldError
from icefield.manifest import DataFile, clear_caches
from icefield.metadata import new_table_metadata
from icefield.schema import Schema
from icefield.storage import FileIO
from icefield.types import LongType, NestedField

from simulation.course import LOCATION, Build, Wrong
from simulation.stores import SimulatedFileSystem, broken
from simulation.world import Odds, World

SAFE_AGE = 60.0
"""In seconds of the world, as all that follows: how old a file is before it may be an orphan."""
STALL = 15.0
"""The longest that a process stands still at a time."""
SKEW = 200.0
"""How far a process's clock is off at most, and the store's."""
JITTER = 2.0
"""The largest deviation of a machine's clock from the clock of its object store."""
AT_ONCE = 5
"""So many files an object store deletes by one request."""
OBJECTS = frozenset({FileSystemAbility.ATOMIC_CREATE, FileSystemAbility.LIST})
"""The abilities of an object store."""
EPOCH_MS = 1_700_000_000_000
EVERY_KIND = (
    icefield.metadata.timestamps,
    icefield_maintenance.orphans.clock,
)
"""The modules that read the clock."""

PROPERTIES = {
    "commit.retry.num-retries": "30",
    "commit.retry.min-wait-ms": "0",
    "commit.status-check.num-retries": "1",
    "commit.status-check.min-wait-ms": "0",
    "commit.manifest.min-count-to-merge": "3",
    "write.metadata.previous-versions-max": "4",
}
ODDS = Odds(lost_request=3, lost_reply=3, late=0, crash_before=2, crash_after=2)


class TimedFiles(dict[str, bytes]):
    """Files, and the time of each by the store's clock."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        super().__init__()
        self.times: dict[str, int] = {}
        self.begun: dict[str, int] = {}
        """The times at which uploads in parts began."""
        self.now_ms = now_ms

    def __setitem__(self, location: str, data: bytes) -> None:
        super().__setitem__(location, data)
        self.times[location] = self.begun.pop(location, self.now_ms())


class TimedFileSystem(SimulatedFileSystem):
    """The file system of the running course; it states the times of files, and reports deletions to the course.

    An object store has no rename, many machines, and times in whole seconds. A request deletes several files, and may
    fail after some of them. A file that is written in parts has the time at which its writer began.
    """

    course: ClassVar[MaintenanceCourse]

    def __init__(self, properties: Any = None) -> None:
        abilities = OBJECTS if self.course.on_objects else MemoryFileSystem.abilities
        super().__init__(self.course.world, self.course.files, abilities)

    def _info(self, location: str, data: bytes) -> FileInfo:
        return FileInfo(location, len(data), self.course.files.times[location])

    def open_output(self, location: str) -> OutputStream:
        began = self.course.files.now_ms()
        output = super().open_output(location)
        if self.course.on_objects:
            self.course.files.begun[location] = began
            self.course.stall(STALL / 3)
        return output

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if location.endswith(".metadata.json"):
            self.course.stall()
        super().put(location, data, mode)

    def delete_many(self, locations: Iterable[str]) -> None:
        named = list(locations)
        at_once = AT_ONCE if self.course.on_objects else 1
        for start in range(0, len(named), at_once):
            some = named[start : start + at_once]
            if len(some) > 1 and self.world.random.random() < 0.05:
                some = some[: self.world.random.randrange(len(some))]
                super().delete_many(some)
                raise broken(f"the rest of {some}")
            super().delete_many(some)
            for location in some:
                self.course.look_at_deletion(location)


@hookimpl
def icefield_file_systems() -> list[Provider]:
    return [Provider(("sim",), "simulation.maintenance:TimedFileSystem")]


PLUGINS = Plugins.installed(extra=["simulation.maintenance"])


class MaintenanceCourse:
    """A course with one seed. It is ``excused``, and proves nothing, if a writer took longer than the safe age."""

    def __init__(self, build: Build, seed: int, *, changes: int = 3, on_objects: bool = False) -> None:
        """``on_objects``: whether the store is an object store like S3."""
        self.world = World(seed, ODDS)
        self.on_objects = on_objects
        self.safe_age = SAFE_AGE - 2 * JITTER - 1 if on_objects else SAFE_AGE
        """The longest time that a writer may take, by the clocks of the store."""
        self.store_skew = self._drawn_skew()
        self.skews: dict[str, float] = {}
        self.files = TimedFiles(self._store_now_ms)
        self.live: set[str] = set()
        """The files that writers learned are in the table."""
        self.doubtful: set[str] = set()
        """The files of commits with an unknown result."""
        self.excused = False
        self.counts = dict.fromkeys(("committed", "expired", "orphans"), 0)
        self._build, self._changes = build, changes
        self._lists: dict[str, set[str]] = {}

    def _drawn_skew(self) -> float:
        return self.world.random.choice((0.0, 0.0, self.world.random.uniform(-SKEW, SKEW)))

    def _store_now_ms(self) -> int:
        """The clock of the store; for an object store, the clock of a random machine of it, in whole seconds."""
        if not self.on_objects:
            return self._ms(self.store_skew)
        return self._ms(self.store_skew + self.world.random.uniform(-JITTER, JITTER)) // 1000 * 1000

    def _ms(self, skew: float) -> int:
        return EPOCH_MS + int((self.world.now + skew) * 1000)

    def time_ns(self) -> int:
        """The clock of the process that asks."""
        who = self.world.who
        if who not in self.skews:
            self.skews[who] = self._drawn_skew() if who else 0.0
        return self._ms(self.skews[who]) * 1_000_000

    def run(self) -> None:
        """Run the course and check its end. Raises ``Wrong`` with the trace."""
        TimedFileSystem.course = self
        clear_caches()  # each course has its own store under the same locations
        with clocks_of(self):
            try:
                self._create()
                for number in range(2):
                    self.world.start(f"writer {number}", lambda number=number: self._write(number))  # type: ignore[misc]
                self.world.start("tagger", self._tag_and_read)
                self.world.start("expiry", self._expire)
                self.world.start("orphans", self._remove_orphans)
                self.world.run()
                self._check()
            except AssertionError as error:
                if not self.excused:
                    raise Wrong(f"{error}\n" + "\n".join(self.world.trace)) from error

    def _strategy(self) -> CommitStrategy:
        return self._build(TimedFileSystem())

    def _create(self) -> None:
        schema = Schema(NestedField(1, "id", LongType()))
        metadata = new_table_metadata(schema, location=LOCATION, properties=PROPERTIES)
        self._strategy().commit(None, Proposal(metadata))

    def opened(self) -> Table:
        handle = TableHandle(("db", "t"), FileIO(PLUGINS, {}, LOCATION), self._strategy())
        state = load_table(handle)
        assert state is not None, "the table is lost"
        return Table(handle, state)

    def stall(self, longest: float = STALL) -> None:
        """Stall the running process for a random time, which may be zero."""
        self.world.pause(self.world.random.choice((0.0, self.world.random.uniform(0, longest))))

    # -- the processes --------------------------------------------------------------------------------------------

    def _write(self, writer: int) -> None:
        """Append files, and remove some of the process's own."""
        mine: list[str] = []
        for number in range(self._changes):
            with self._unlucky():
                table = self.opened()
                self.stall()
                if mine and self.world.random.random() < 0.4:
                    self._delete(table, mine.pop())
                    continue
                name = f"{LOCATION}/data/{writer}-{number}.parquet"
                began = self.world.now
                with table.io.open_output(name) as file:
                    file.write(b"rows")
                self.stall()
                adding = table.update_snapshot().merge_append().append_file(data_file(name))
                if self._commits(name, adding.commit):
                    mine.append(name)
                self.excused |= self.world.now - began > self.safe_age

    def _delete(self, table: Table, name: str) -> None:
        self.live.discard(name)
        self._commits(None, lambda: table.update_snapshot().delete().delete_file(name).commit())

    def _commits(self, name: str | None, commit: Callable[[], Any]) -> bool:
        try:
            commit()
        except CommitFailed:
            return False
        except CommitStateUnknown:
            self.doubtful |= {name} if name else set()
            return False
        self.counts["committed"] += 1
        self.live |= {name} if name else set()
        return name is not None

    def _tag_and_read(self) -> None:
        """A tagged version can be read until its tag is removed."""
        for number in range(2):
            with self._unlucky():
                table = self.opened()
                head = table.current_snapshot()
                self.stall()
                if head is None:
                    continue
                table.manage_snapshots().create_tag(head.snapshot_id, f"tag-{number}").commit()
                self.stall(2 * STALL)
                tagged = self.opened()
                try:
                    named = tagged.inspect.files(tagged.refs()[f"tag-{number}"].snapshot_id)
                    for name in named.column("file_path").to_pylist():
                        tagged.io.file_system(name).stat(name)
                except FileMissing as error:
                    raise AssertionError(f"a file of a tag is not there: {error}") from error

    def _expire(self) -> None:
        for _ in range(2):
            self.stall()
            with self._unlucky():
                table = self.opened()
                self.stall()
                now_ms = self.time_ns() // 1_000_000
                self.counts["expired"] += len(table.maintenance.expire_snapshots(now_ms).snapshot_ids)

    def _remove_orphans(self) -> None:
        for _ in range(3):
            self.world.pause(SAFE_AGE / 2)
            with self._unlucky():
                table = self.opened()
                self.stall(SAFE_AGE)
                limit = self.time_ns() // 1_000_000 - int(SAFE_AGE * 1000)
                found = table.maintenance.remove_orphan_files(limit, dry_run=False, allow_recent=True)
                self.counts["orphans"] += found.files

    @contextmanager
    def _unlucky(self) -> Iterator[None]:
        """Requests fail, and the base of a change expires: both end the change, and neither may harm the table."""
        try:
            yield
        except IcefieldError as error:
            self.world.trace.append(f"  {self.world.who} gives up: {error}")

    # -- invariants -----------------------------------------------------------------------------------------------

    def look_at_deletion(self, location: str) -> None:
        """No file of the current version is deleted."""
        with self._looking():
            assert location not in self._named(self.opened()), f"a live file was deleted: {location}"

    def _check(self) -> None:
        with self._looking():
            table = self.opened()
            gone = self._named(table) - self.files.keys()
            assert not gone, f"the table refers to what is not there: {sorted(gone)}"
            there = set(table.inspect.files().column("file_path").to_pylist()) if table.current_snapshot() else set()
            assert there >= self.live, f"committed, and not there: {sorted(self.live - there)}"

    @contextmanager
    def _looking(self) -> Iterator[None]:
        before, self.world.quiet = self.world.quiet, True
        try:
            yield
        except FileMissing as error:
            raise AssertionError(f"a file that the table refers to is not there: {error}") from error
        finally:
            self.world.quiet = before

    def _named(self, table: Table) -> set[str]:
        """All files that the snapshots of a version name, and that are live in them."""
        named: set[str] = set()
        for snapshot in table.snapshots():
            listed = str(snapshot.manifest_list)
            if listed not in self._lists:
                files = table.inspect.files(snapshot.snapshot_id).column("file_path").to_pylist()
                manifests = table.inspect.manifests(snapshot.snapshot_id).column("path").to_pylist()
                self._lists[listed] = {listed, *files, *manifests}
            named |= self._lists[listed]
        return named


def data_file(name: str) -> DataFile:
    return DataFile(file_path=name, file_format="parquet", record_count=1, file_size_in_bytes=4)


@contextmanager
def clocks_of(course: MaintenanceCourse) -> Iterator[None]:
    """Make the kernel use the clocks of a course."""
    with pytest.MonkeyPatch.context() as patch:
        for module in EVERY_KIND:
            patch.setattr(module, "time", SimpleNamespace(time_ns=course.time_ns))
        yield

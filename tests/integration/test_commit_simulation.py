"""The commit protocols in a simulated world: lost, late or dead requests and writers lose no update."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import icefield_dynamodb.lease
import pytest
from icefield.abc import CommitStrategy, FileSystemAbility, Pointer, PutMode
from icefield.builtin.strategies import CreateStrategy, RenameStrategy
from icefield.errors import CommitStateUnknown, FileExists, FileMissing, StorageError
from icefield.toolkit import VersionedStrategy, delete_quietly
from icefield_dynamodb.item_strategy import ItemStrategy
from icefield_dynamodb.items import ReplyLost
from icefield_dynamodb.lease import Lease
from icefield_dynamodb.options import LockOptions
from icefield_dynamodb.strategy import FencedByStore
from mutants.strategies.versions import RetriesBlindly
from simulation.course import LOCATION, Build, Course, Wrong
from simulation.stores import SimulatedFileSystem, SimulatedItems, SimulatedMetastore

NAME = ("db", "t")
COURSES, PARTS = (100_000, 20) if os.environ.get("ICEFIELD_SOAK") else (1_200, 4)
PLANTED_WITHIN = 1_000
OPTIONS = LockOptions(
    "locks", acquire_interval=0.1, acquire_timeout=5.0, heartbeat=0.1, lease=0.3, foreign_writers=False
)


@pytest.fixture(autouse=True)
def simulated_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make leases use the clock of the simulated world. No heartbeat renews a lease, so every lease may expire."""
    monkeypatch.setattr(icefield_dynamodb.lease, "time", time)
    monkeypatch.setattr(icefield_dynamodb.lease, "Thread", lambda **_: SimpleNamespace(start=_nothing, join=_nothing))


def _nothing() -> None:
    pass


def in_world(kind: type[CommitStrategy]) -> Build:
    return lambda system: kind(NAME, LOCATION, system)


def locked(kind: type[FencedByStore | ItemStrategy], *, fence: bool) -> Build:
    def build(system: SimulatedFileSystem) -> CommitStrategy:
        world = system.world
        icefield_dynamodb.lease.time = SimpleNamespace(monotonic=lambda: world.now, sleep=world.pause)  # type: ignore[attr-defined]
        if not fence:
            system = SimulatedFileSystem(system.world, system.files, frozenset({FileSystemAbility.LIST}))
        items = SimulatedItems(world, ReplyLost)
        simulated = type(kind.__name__, (kind,), {"_locks": items, "_items": items})
        made: Any = simulated.__new__(simulated)
        VersionedStrategy.__init__(made, NAME, LOCATION, system)
        made._options = OPTIONS
        return made

    return build


SHIPPED: dict[str, Build] = {
    "create": in_world(CreateStrategy),
    "rename": in_world(RenameStrategy),
    "metastore": lambda system: SimulatedMetastore(system, LOCATION),
    "dynamodb-lock": locked(FencedByStore, fence=True),
    "dynamodb-lock, items decide": locked(ItemStrategy, fence=False),
}


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("COMMIT-01", "COMMIT-03", "COMMIT-13", "FS-09", "FS-10")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", SHIPPED)
def test_no_course_of_events_breaks_a_promise(name: str, part: int) -> None:
    for seed in range(part, COURSES, PARTS):
        Course(SHIPPED[name], seed, drops=True).run()


class ChecksThenWrites(CreateStrategy):
    def publish(self, target: str, data: bytes) -> Pointer | None:
        if self.exists(target):
            return None
        self.file_system.put(target, data, PutMode.OVERWRITE)
        return self.pointer_to(target)


class CleansUpAfterUnknown(CreateStrategy):
    def publish(self, target: str, data: bytes) -> Pointer | None:
        try:
            self.file_system.put(target, data, PutMode.CREATE)
        except FileExists:
            return None
        except StorageError as error:
            delete_quietly(self.file_system, target)
            raise CommitStateUnknown("the reply was lost") from error
        return self.pointer_to(target)


class LocksWithoutAFence(FencedByStore):
    def publish(self, target: str, data: bytes) -> Pointer | None:
        lease = Lease(self._locks, self._options, target, f"{target}.{uuid4()}")
        if not lease.acquire(lambda: self.exists(target)):
            return None
        with lease:
            if self.exists(target):
                return None
            self.file_system.put(target, data, PutMode.OVERWRITE)
            return self.pointer_to(target)


class FreesWhatItDrops(CreateStrategy):
    """Deletes the versions of a dropped table, so that another writer can publish their names again."""

    def drop(self) -> None:
        while versions := self.listed():
            self.file_system.delete_many([location for _, location in sorted(versions)])


class ReplacingFileSystem(SimulatedFileSystem):
    def rename(self, source: str, target: str) -> None:
        def effect() -> None:
            if source not in self.files:
                raise FileMissing(f"no file {source}", location=source)
            self.files[target] = self.files.pop(source)

        self.world.request(f"rename {source} {target}", effect, lambda what: StorageError(what, retryable=True))


def on_replacing_renames(system: SimulatedFileSystem) -> CommitStrategy:
    return RenameStrategy(NAME, LOCATION, ReplacingFileSystem(system.world, system.files))


PLANTED: dict[str, Build] = {
    "a check and then a write": in_world(ChecksThenWrites),
    "a rename that replaces": on_replacing_renames,
    "a lock without a fence": locked(LocksWithoutAFence, fence=False),
    "a clean-up after an unknown outcome": in_world(CleansUpAfterUnknown),
    "a blind retry": in_world(RetriesBlindly),
    "a drop that frees names": in_world(FreesWhatItDrops),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    def first_wrong(build: Callable[[SimulatedFileSystem], CommitStrategy]) -> Wrong | None:
        for seed in range(PLANTED_WITHIN):
            try:
                Course(build, seed, drops=True).run()
            except Wrong as wrong:
                return wrong
        return None

    assert first_wrong(PLANTED[name]) is not None


def test_a_course_of_events_goes_by_its_seed() -> None:
    def verbs(seed: int) -> list[str]:
        course = Course(SHIPPED["rename"], seed)
        course.run()
        return [" ".join(line.split()[:3]) for line in course.world.trace]

    assert verbs(7) == verbs(7) != verbs(8)

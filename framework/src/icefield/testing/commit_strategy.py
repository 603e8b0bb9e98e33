"""The suite that a commit strategy must pass.

An author subclasses it and tells how to build the strategy; everything else is the suite's::

    class TestMyStrategy(CommitStrategySuite):
        @pytest.fixture
        def file_system(self): ...      # a file system the strategy is safe on

        @pytest.fixture
        def location(self): ...         # a fresh location for one table

        def strategy(self, file_system, location):
            return MyStrategy(("db", "t"), location, file_system, {})

Every call of ``strategy`` stands for another process that works on the same table.
"""

from __future__ import annotations

import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from icefield.abc import CommitStrategy, Committed, Conflict, FileSystem, FileSystemAbility, Pointer
from icefield.errors import CommitStateUnknown, IcefieldError, NoSuchTable
from icefield.metadata import TableMetadata, apply_updates, decode_metadata, new_table_metadata
from icefield.metadata.updates import SetProperties
from icefield.schema import Schema
from icefield.testing.base import Suite
from icefield.testing.faults import Crash, Fault, FaultyFileSystem
from icefield.types import LongType, NestedField

WRITERS = 8
COMMITS = 6


class CommitStrategySuite(Suite):
    """Checks of ``icefield.abc.CommitStrategy``."""

    patience_seconds: ClassVar[float] = 60.0
    """How long a commit may take to get through when others commit as well."""

    @pytest.fixture
    def file_system(self) -> FileSystem:
        """A file system that the strategy is safe on."""
        raise pytest.UsageError("give a fixture `file_system` that the strategy is safe on")

    @pytest.fixture
    def location(self) -> str:
        """A location for one table, different for each test."""
        raise pytest.UsageError("give a fixture `location` that returns a fresh table location")

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        """Build the strategy as another process would."""
        raise pytest.UsageError("give a method `strategy(file_system, location)` that builds the strategy")

    # -- one writer

    def test_there_is_no_table_before_it_is_created(self, file_system: FileSystem, location: str) -> None:
        """If this fails, ``load`` finds another table's files, or raises where it should answer None."""
        assert self.strategy(file_system, location).load() is None

    def test_creating_makes_the_table_visible(self, file_system: FileSystem, location: str) -> None:
        """If this fails, ``commit(None, …)`` returns before the metadata is published."""
        metadata = self.new_metadata(location)
        made = self.committed(self.strategy(file_system, location).commit(None, metadata))
        assert self.strategy(file_system, location).load() == made
        assert self.read(file_system, made).table_uuid == metadata.table_uuid

    def test_creating_twice_is_a_conflict(self, file_system: FileSystem, location: str) -> None:
        """If this fails, creation is not conditional, and the second creator takes the first one's table away."""
        first, second = self.new_metadata(location), self.new_metadata(location)
        made = self.committed(self.strategy(file_system, location).commit(None, first))
        assert isinstance(self.strategy(file_system, location).commit(None, second), Conflict)
        assert self.strategy(file_system, location).load() == made
        assert self.read(file_system, made).table_uuid == first.table_uuid

    def test_each_commit_moves_the_pointer(self, file_system: FileSystem, location: str) -> None:
        """If this fails, ``commit`` publishes under a name that ``load`` does not find."""
        pointer = self.create(file_system, location)
        for number in range(1, 13):
            strategy = self.strategy(file_system, location)
            pointer = self.committed(strategy.commit(pointer, self.changed(file_system, pointer, f"n{number}", "1")))
            assert strategy.load() == pointer
            assert self.strategy(file_system, location).load() == pointer
            assert len(self.read(file_system, pointer).properties) == number

    def test_an_old_base_is_a_conflict_and_leaves_nothing(self, file_system: FileSystem, location: str) -> None:
        """If this fails, ``commit`` does not check its base, or leaves the loser's file behind."""
        old = self.create(file_system, location)
        new = self.committed(
            self.strategy(file_system, location).commit(old, self.changed(file_system, old, "winner", "1"))
        )
        before = self.files(file_system, location)
        late = self.changed(file_system, old, "loser", "1")
        assert isinstance(self.strategy(file_system, location).commit(old, late), Conflict)
        assert self.files(file_system, location) == before
        assert self.strategy(file_system, location).load() == new
        assert "loser" not in self.read(file_system, new).properties

    def test_a_dropped_table_is_gone_and_can_be_created_again(self, file_system: FileSystem, location: str) -> None:
        """If this fails, ``drop`` leaves a version or a hint that ``load`` still finds."""
        pointer = self.create(file_system, location)
        for number in range(3):
            changed = self.changed(file_system, pointer, f"n{number}", "1")
            pointer = self.committed(self.strategy(file_system, location).commit(pointer, changed))
        self.strategy(file_system, location).drop()
        assert self.strategy(file_system, location).load() is None
        with pytest.raises(NoSuchTable):
            self.strategy(file_system, location).drop()
        again = self.new_metadata(location)
        made = self.committed(self.strategy(file_system, location).commit(None, again))
        assert self.read(file_system, made).table_uuid == again.table_uuid

    def test_a_commit_on_a_dropped_table_does_not_revive_it(self, file_system: FileSystem, location: str) -> None:
        """If this fails, a stalled writer publishes a version beside nothing."""
        pointer = self.create(file_system, location)
        late = self.changed(file_system, pointer, "late", "1")
        self.strategy(file_system, location).drop()
        assert isinstance(self.strategy(file_system, location).commit(pointer, late), Conflict)
        assert self.strategy(file_system, location).load() is None

    def test_a_commit_on_a_created_again_table_is_a_conflict(self, file_system: FileSystem, location: str) -> None:
        """If this fails, a stalled writer of the dropped table overwrites the new one of the same name."""
        pointer = self.create(file_system, location)
        late = self.changed(file_system, pointer, "late", "1")
        self.strategy(file_system, location).drop()
        new = self.create(file_system, location)
        assert isinstance(self.strategy(file_system, location).commit(pointer, late), Conflict)
        assert self.strategy(file_system, location).load() == new
        assert "late" not in self.read(file_system, new).properties

    def test_a_pointer_pickles(self, file_system: FileSystem, location: str) -> None:
        """If this fails, a pointer holds more than text and a number."""
        pointer = self.create(file_system, location)
        assert pickle.loads(pickle.dumps(pointer)) == pointer

    # -- many writers

    def test_no_update_of_many_writers_is_lost(self, file_system: FileSystem, location: str) -> None:
        """If this fails, two writers both believed that they replaced the same base."""
        self.create(file_system, location)
        acknowledged: list[str] = []
        failures: list[BaseException] = []

        def write(writer: int) -> None:
            try:
                for number in range(COMMITS):
                    self.commit_until_done(self.strategy(file_system, location), file_system, f"w{writer}-{number}")
                    acknowledged.append(f"w{writer}-{number}")
            except BaseException as error:
                failures.append(error)

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(write, range(WRITERS)))
        assert not failures
        pointer = self.strategy(file_system, location).load()
        assert pointer is not None
        assert set(self.read(file_system, pointer).properties) == set(acknowledged)
        assert len(acknowledged) == WRITERS * COMMITS

    def test_one_of_many_creators_wins(self, file_system: FileSystem, location: str) -> None:
        """If this fails, creation looks first and writes then."""
        barrier = threading.Barrier(WRITERS)

        def create(_: int) -> str | None:
            metadata = self.new_metadata(location)
            strategy = self.strategy(file_system, location)
            barrier.wait()
            return metadata.table_uuid if isinstance(strategy.commit(None, metadata), Committed) else None

        with ThreadPoolExecutor(WRITERS) as pool:
            winners = [uuid for uuid in pool.map(create, range(WRITERS)) if uuid is not None]
        pointer = self.strategy(file_system, location).load()
        assert pointer is not None
        assert winners == [self.read(file_system, pointer).table_uuid]

    def test_readers_always_see_a_whole_version(self, file_system: FileSystem, location: str) -> None:
        """If this fails, the pointer moves before the metadata file is complete."""
        self.create(file_system, location)
        done = threading.Event()
        failures: list[BaseException] = []
        seen: list[int] = []

        def watch() -> None:
            try:
                while not done.is_set():
                    pointer = self.strategy(file_system, location).load()
                    assert pointer is not None
                    seen.append(len(self.read(file_system, pointer).properties))
            except BaseException as error:
                failures.append(error)

        watcher = threading.Thread(target=watch)
        watcher.start()
        for number in range(20):
            self.commit_until_done(self.strategy(file_system, location), file_system, f"n{number}")
        done.set()
        watcher.join()
        assert not failures
        assert seen == sorted(seen)

    # -- faults

    @pytest.mark.parametrize("verdict", ["lose-request", "lose-reply"])
    def test_a_lost_reply_is_settled_or_said_to_be_unknown(
        self, file_system: FileSystem, location: str, verdict: str
    ) -> None:
        """If this fails, a reply that was lost is reported as a conflict, a failure or a success that was none."""
        for step in range(40):
            place = f"{location}/{verdict}-{step}"
            pointer = self.create(file_system, place)
            faulty = FaultyFileSystem(file_system, _at(step, verdict))
            metadata = self.changed(file_system, pointer, "mine", "1")
            outcome = _outcome(self.strategy(faulty, place), pointer, metadata)
            self.check_outcome(file_system, place, outcome, faulty)
            if len(faulty.calls) <= step:
                break

    def test_a_connection_that_stays_down_deletes_nothing_published(
        self, file_system: FileSystem, location: str
    ) -> None:
        """If this fails, a file is deleted whose publication was never answered: readers may have seen it."""
        for step in range(40):
            place = f"{location}/down-{step}"
            pointer = self.create(file_system, place)
            faulty = FaultyFileSystem(file_system, _from(step, "lose-reply"))
            metadata = self.changed(file_system, pointer, "mine", "1")
            outcome = _outcome(self.strategy(faulty, place), pointer, metadata)
            self.check_outcome(file_system, place, outcome, faulty)
            published = {at for name, at in faulty.calls[step:] if name in ("put", "rename")}
            deleted = {at for name, found in faulty.calls if name == "delete_many" for at in found.split(",")}
            assert not published & deleted, f"deleted after an unanswered publication: {faulty.calls}"
            if len(faulty.calls) <= step:
                break

    def test_a_crash_at_any_step_leaves_the_old_or_the_new_version(
        self, file_system: FileSystem, location: str
    ) -> None:
        """If this fails, a process that dies at that step leaves a table that does not open, or a half version."""
        for when in ("crash-before", "crash-after"):
            for step in range(40):
                place = f"{location}/{when}-{step}"
                pointer = self.create(file_system, place)
                faulty = FaultyFileSystem(file_system, _at(step, when))
                metadata = self.changed(file_system, pointer, "mine", "1")
                outcome = _outcome(self.strategy(faulty, place), pointer, metadata)
                current = self.strategy(file_system, place).load()
                assert current is not None, f"the table is gone after {when} {step}: {faulty.calls}"
                assert set(self.read(file_system, current).properties) <= {"mine"}
                if isinstance(outcome, Committed):
                    assert current == outcome.pointer
                # Whatever the crash left, the next writer must get through.
                self.commit_until_done(self.strategy(file_system, place), file_system, "next")
                if len(faulty.calls) <= step:
                    break

    def test_storage_that_cannot_keep_the_promise_is_refused_by_needs(self, file_system: FileSystem) -> None:
        """If this fails, the class does not declare in ``needs`` what its atomic step rests on."""
        strategy = type(self.strategy(file_system, "memory://needs"))
        assert all(isinstance(need, FileSystemAbility) for need in strategy.needs)
        assert not strategy.needs or file_system.abilities.intersection(strategy.needs)

    # -- helpers

    def new_metadata(self, location: str) -> TableMetadata:
        """Metadata of a new table."""
        schema = Schema(NestedField(1, "id", LongType(), required=True))
        return new_table_metadata(schema, location=location, properties={})

    def create(self, file_system: FileSystem, location: str) -> Pointer:
        """Create the table."""
        return self.committed(self.strategy(file_system, location).commit(None, self.new_metadata(location)))

    def changed(self, file_system: FileSystem, base: Pointer, key: str, value: str) -> TableMetadata:
        """The metadata at ``base`` with one more property."""
        return apply_updates(self.read(file_system, base), [SetProperties({key: value})])

    def commit_until_done(self, strategy: CommitStrategy, file_system: FileSystem, key: str) -> Pointer:
        """Set a property, on whatever is current, until it is done."""
        deadline = time.monotonic() + self.patience_seconds
        while True:
            assert time.monotonic() < deadline, "a commit does not get through, on whatever base"
            base = strategy.load()
            assert base is not None
            try:
                metadata = self.changed(file_system, base, key, "1")
                outcome = strategy.commit(base, metadata)
            except FileNotFoundError:  # the base was replaced and deleted between two steps
                continue
            if isinstance(outcome, Committed):
                return outcome.pointer

    def committed(self, outcome: Committed | Conflict) -> Pointer:
        """The pointer of a commit that must have succeeded."""
        assert isinstance(outcome, Committed), f"expected Committed, got {outcome}"
        return outcome.pointer

    def read(self, file_system: FileSystem, pointer: Pointer) -> TableMetadata:
        """The metadata that a pointer names."""
        return decode_metadata(file_system.open_input(pointer.location).read(), pointer.location)

    def files(self, file_system: FileSystem, location: str) -> set[str]:
        """Every file of the table, where the store can list."""
        if FileSystemAbility.LIST not in file_system.abilities:
            return set()
        return {info.location for info in file_system.list(location)}

    def check_outcome(
        self,
        file_system: FileSystem,
        location: str,
        outcome: Committed | Conflict | BaseException,
        faulty: FaultyFileSystem,
    ) -> None:
        """What is said must be what is so."""
        current = self.strategy(file_system, location).load()
        assert current is not None
        happened = "mine" in self.read(file_system, current).properties
        if isinstance(outcome, Committed):
            assert happened, f"said to be committed and is not: {faulty.calls}"
        elif isinstance(outcome, CommitStateUnknown):
            return
        else:
            assert isinstance(outcome, Conflict | IcefieldError), f"not one of Icefield's errors: {outcome!r}"
            assert not happened, f"said to have failed and is committed: {outcome!r} after {faulty.calls}"


def _at(step: int, verdict: str) -> Fault:
    return lambda number, _name, _location: verdict if number == step else None


def _from(step: int, verdict: str) -> Fault:
    return lambda number, _name, _location: verdict if number >= step else None


def _outcome(strategy: CommitStrategy, base: Pointer, metadata: TableMetadata) -> Committed | Conflict | BaseException:
    try:
        return strategy.commit(base, metadata)
    except (Crash, Exception) as error:
        return error

"""Checks of many writers, in threads and in processes: no update is lost, and no version is visible in part."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from icefield.abc import Committed, Conflict, FileSystem, Pointer
from icefield.errors import CommitStateUnknown, IcefieldError

from icefield_testing.faults import CHANGES, FaultyFileSystem
from icefield_testing.processes import AnotherProcess
from icefield_testing.service_faults import RequestFaults
from icefield_testing.strategies.base import StrategyChecks

WRITERS = 8
COMMITS = 6
PROCESSES = 3
COMMITS_OF_A_PROCESS = 4
_STEPS = 40


class RacingChecks(StrategyChecks):
    """Checks of concurrent use."""

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
        pointer = self.pointer(self.strategy(file_system, location))
        assert pointer is not None
        assert set(self.read(file_system, pointer).properties) == set(acknowledged)
        assert len(acknowledged) == WRITERS * COMMITS

    def test_one_of_many_creators_wins(self, file_system: FileSystem, location: str) -> None:
        """If this fails, creation looks first and writes then."""
        barrier = threading.Barrier(WRITERS)

        def create(_: int) -> str | None:
            proposal = self.new_table(location)
            strategy = self.strategy(file_system, location)
            barrier.wait()
            return proposal.metadata.table_uuid if isinstance(strategy.commit(None, proposal), Committed) else None

        with ThreadPoolExecutor(WRITERS) as pool:
            winners = [uuid for uuid in pool.map(create, range(WRITERS)) if uuid is not None]
        pointer = self.pointer(self.strategy(file_system, location))
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
                    pointer = self.pointer(self.strategy(file_system, location))
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

    # -- processes

    def test_no_update_of_many_processes_is_lost(self, file_system: FileSystem, location: str) -> None:
        """If this fails, what keeps writers apart (a lock, a cache of the current version) works between the threads of
        one process only: let the store or the service decide."""
        self.needs_processes()
        self.create(file_system, location)

        def write(writer: int) -> list[str]:
            self.in_another_process()
            system = self.copy(file_system)
            keys = [f"p{writer}-{number}" for number in range(COMMITS_OF_A_PROCESS)]
            for key in keys:
                self.commit_until_done(self.strategy(system, location), system, key)
            return keys

        acknowledged: set[str] = set()
        with ExitStack() as stack:
            others = [stack.enter_context(AnotherProcess(write)) for _ in range(PROCESSES)]
            for writer, other in enumerate(others):
                other.ask(writer)
            for other in others:
                acknowledged.update(other.answer(2 * self.max_wait_seconds))
        pointer = self.pointer(self.strategy(file_system, location))
        assert pointer is not None
        assert set(self.read(file_system, pointer).properties) == acknowledged

    def test_a_writer_that_is_held_up_overwrites_no_other_process(
        self, file_system: FileSystem, location: str, service: RequestFaults | None
    ) -> None:
        """If this fails, a writer looked whether its base is current, was held up, and wrote though another process had
        committed meanwhile: make it one atomic step of the store or the service. A lock of threads keeps no other
        process out."""
        self.needs_processes()
        waits = _Waits(self.hold_seconds)

        def commit(place: str, base: Pointer) -> str:
            self.in_another_process()
            system = self.copy(file_system)
            outcome = self.outcome(self.strategy(system, place), base, self.changed(system, base, "other", "1"))
            said = type(outcome).__name__
            return f"{said}: {outcome}" if isinstance(outcome, BaseException) else said

        with AnotherProcess(commit) as other:
            for step in range(_STEPS):
                if not self._held_at_a_change(file_system, f"{location}/held-{step}", step, other, waits):
                    break
            for step in range(_STEPS):
                place = f"{location}/waits-{step}"
                if service is None or not self._held_at_a_request(file_system, place, step, other, waits, service):
                    break

    def _held_at_a_change(
        self, file_system: FileSystem, place: str, step: int, other: AnotherProcess, waits: _Waits
    ) -> bool:
        """Whether the store has a change with this number; another process commits before it, on the same base."""
        base = self.create(file_system, place)
        changes: list[str] = []

        def fault(number: int, name: str, at: str) -> None:
            if name in CHANGES:
                changes.append(f"{name} {at}")
                if len(changes) == step + 1:
                    waits.let(other, place, base)

        proposal = self.changed(file_system, base, "mine", "1")
        mine = self.outcome(self.strategy(FaultyFileSystem(file_system, fault), place), base, proposal)
        return self._settled(file_system, place, mine, other, changes, step)

    def _held_at_a_request(
        self,
        file_system: FileSystem,
        place: str,
        step: int,
        other: AnotherProcess,
        waits: _Waits,
        service: RequestFaults,
    ) -> bool:
        """Whether the service gets a request with this number; another process commits before it, on the same base."""
        base = self.create(file_system, place)
        strategy = self.strategy_through(service, file_system, place)
        proposal = self.changed(file_system, base, "mine", "1")
        requests: list[str] = []
        assert self.pointer(strategy) == base  # it has connected, so that what is counted is the commit

        def fault(number: int) -> None:
            requests.append(f"request {number}")
            if len(requests) == step + 1:
                waits.let(other, place, base)

        service.arm(fault)
        mine = self.outcome(strategy, base, proposal)
        service.disarm()
        return self._settled(file_system, place, mine, other, requests, step)

    def _settled(
        self,
        file_system: FileSystem,
        place: str,
        mine: object,
        other: AnotherProcess,
        steps: list[str],
        step: int,
    ) -> bool:
        """Whether the step was reached; if so, the answers to both writers must be true."""
        if len(steps) <= step:
            return False
        theirs = other.answer(self.max_wait_seconds)
        current = self.pointer(self.strategy(file_system, place))
        assert current is not None
        found = set(self.read(file_system, current).properties)
        story = f"held up before {steps[step]}: mine {mine!r}, the other's {theirs}"
        assert isinstance(mine, Committed | Conflict | IcefieldError), story
        assert not (isinstance(mine, Committed) and theirs == "Committed"), f"both replaced one base, {story}"
        if not isinstance(mine, CommitStateUnknown):
            assert ("mine" in found) == isinstance(mine, Committed), f"the table has {found}, {story}"
        if not theirs.startswith("CommitStateUnknown"):
            assert ("other" in found) == (theirs == "Committed"), f"the table has {found}, {story}"
        return True


class _Waits:
    """Waits for another process to commit, and waits less after that process was once blocked by a lock."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def let(self, other: AnotherProcess, place: str, base: Pointer) -> None:
        other.ask(place, base)
        if not other.answers_within(self._seconds):
            self._seconds = max(self._seconds / 4, 0.1)

"""Checks of many writers, in threads and in processes: no update is lost, and no version is visible in part."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from icefield.abc import Committed, FileSystem

from icefield_testing.processes import AnotherProcess
from icefield_testing.strategies.base import StrategyChecks

WRITERS = 8
COMMITS = 6
PROCESSES = 3
COMMITS_OF_A_PROCESS = 4


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
        self.check_none_is_lost(acknowledged, self.read(file_system, pointer).properties)
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
        self.check_none_is_lost(acknowledged, self.read(file_system, pointer).properties)

"""Checks of one strategy that several threads use, and of one that a forked process inherits."""

from __future__ import annotations

import threading
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress

from icefield.abc import CommitStrategy, Committed, Conflict, FileSystem, Pointer
from icefield.errors import CommitFailed, FileMissing

from icefield_testing.fault_model import STEPS
from icefield_testing.processes import AnotherProcess
from icefield_testing.service_faults import RequestFaults
from icefield_testing.strategies.base import FaultPlace, Outcome
from icefield_testing.strategies.held import HeldUpChecks, held_up

_THREADS = 4
_COMMITS = 3
_SECONDS = 0.5


class SharingChecks(HeldUpChecks):
    """Checks of one object in several threads and processes."""

    def test_threads_that_share_a_strategy_lose_no_update(self, file_system: FileSystem, location: str) -> None:
        """If this fails, the strategy keeps what belongs to one commit in itself, or a connection that threads use at
        the same time without a lock."""
        self.create(file_system, location)
        shared = self.strategy(file_system, location)
        acknowledged: list[str] = []

        def write(writer: int) -> None:
            for number in range(_COMMITS):
                key = f"t{writer}-{number}"
                self._check_pointer(file_system, self.commit_until_done(shared, file_system, key), key, "in a race")
                acknowledged.append(key)

        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(write, range(_THREADS)))
        self.check_none_is_lost(acknowledged, self.properties_now(file_system, location, "after a race of threads"))

    def test_a_commit_is_not_mixed_with_one_of_another_thread(
        self, file_system: FileSystem, location: str, service: RequestFaults | None
    ) -> None:
        """If this fails, a thread committed through the same strategy while another was in the middle of a commit, and
        one took the other's file, pointer or reply for its own: keep nothing of one commit in the strategy."""
        for place in self.held_places(file_system, service):
            for number in range(STEPS):
                at = f"{location}/shared-{place.name}-{number}"
                if not self._commits_among(file_system, at, place, number):
                    break

    def test_a_forked_process_commits_with_the_strategy_of_its_parent(
        self, file_system: FileSystem, location: str
    ) -> None:
        """If this fails, the strategy keeps a thread, a lock, a connection or a state of random numbers that a forked
        process cannot share: look at the process's number before each use, or register ``os.register_at_fork``."""
        self.needs_processes()
        strategy = self.strategy(file_system, location)
        made = [self.committed(strategy.commit(None, self.new_table(location)))]
        made.append(self.commit_until_done(strategy, file_system, "before"))

        def commit(key: str) -> Pointer:
            self.in_another_process()
            return self.commit_until_done(strategy, file_system, key)

        with AnotherProcess(commit) as child:
            child.ask("child-alone")
            made.append(child.answer(self.max_wait_seconds))
            made.append(self.commit_until_done(strategy, file_system, "parent-alone"))
            self._check_names(made)
            child.ask("child-with-parent")
            made.append(self.commit_until_done(strategy, file_system, "parent-with-child"))
            made.append(child.answer(self.max_wait_seconds))
            self._check_names(made)
        keys = ["before", "child-alone", "parent-alone", "child-with-parent", "parent-with-child"]
        self.check_none_is_lost(keys, self.properties_now(file_system, location, "after a fork"))

    def test_a_process_that_is_forked_in_the_middle_of_a_commit_commits_to_another_table(
        self, file_system: FileSystem, location: str, service: RequestFaults | None
    ) -> None:
        """If this fails, one thread was in the middle of a commit when another thread forked: the child process waits
        for a lock of threads that nobody releases there, or it ends the commit, the lock or the connection of its
        parent. Renew locks in the child (``reset_after_fork``), and let it release nothing of its parent."""
        self.needs_processes()
        for place in self.held_places(file_system, service):
            for number in range(STEPS):
                if not self._forks_among(file_system, f"{location}/forking-{place.name}-{number}", place, number):
                    break

    # -- helpers

    def _forks_among(self, file_system: FileSystem, at: str, place: FaultPlace, number: int) -> bool:
        """Whether a commit makes a change or request with this number; another thread forks a process before it."""
        base = self.create(file_system, at)
        self.create(file_system, f"{at}-child")
        strategy = place.build(at)
        assert self.pointer(strategy) == base
        proposal = self.changed(file_system, base, "mine", "1")

        def commit() -> Pointer:
            self.in_another_process()
            return self.commit_until_done(self.strategy(file_system, f"{at}-child"), file_system, "child")

        def fork() -> None:
            with AnotherProcess(commit) as child:
                child.ask()
                child.answer(self.max_wait_seconds)

        forked: list[Future[None]] = []

        def meanwhile() -> None:
            forked.append(pool.submit(fork))
            wait(forked, min(self.hold_seconds, _SECONDS))  # a lock of all tables may keep it out

        with ThreadPoolExecutor(1) as pool:
            with held_up(place._replace(others=None), number, meanwhile) as step:
                mine = self.outcome(strategy, base, proposal)
            for each in forked:
                each.result()
        if not step.reached:
            return False
        story = f"{step}, when another thread forked a process: {mine!r}"
        assert isinstance(mine, Committed), f"a commit that nobody disturbs fails, {story}"
        self.check_none_is_lost(["mine"], self.properties_now(file_system, at, story))
        self.check_none_is_lost(["child"], self.properties_now(file_system, f"{at}-child", story))
        return True

    def _check_names(self, made: list[Pointer]) -> None:
        assert len({each.location for each in made}) == len(made), f"two commits have one metadata file: {made}"

    def _commits_among(self, file_system: FileSystem, at: str, place: FaultPlace, number: int) -> bool:
        """Whether a commit makes a change or request with this number; another thread commits before it."""
        base = self.create(file_system, at)
        strategy = place.build(at)
        assert self.pointer(strategy) == base
        proposal = self.changed(file_system, base, "mine", "1")
        theirs: list[Outcome] = []
        thread = threading.Thread(target=lambda: theirs.append(self._commit_soon(strategy, file_system, base)))

        def meanwhile() -> None:
            thread.start()
            thread.join(min(self.hold_seconds, _SECONDS))  # a lock may keep it out

        with held_up(place._replace(others=None), number, meanwhile) as step:
            mine = self.outcome(strategy, base, proposal)
            if thread.ident is not None:
                thread.join(self.max_wait_seconds)
        if thread.ident is None:
            return False
        assert theirs, f"a thread did not end its commit within {self.max_wait_seconds:g} s, {step}"
        story = f"{step}: mine {mine!r}, the other thread's {theirs[0]!r}"
        found = self.properties_now(file_system, at, story)
        for key, outcome in (("mine", mine), ("other", theirs[0])):
            assert isinstance(outcome, Committed | Conflict | CommitFailed), f"neither committed nor refused, {story}"
            is_made = isinstance(outcome, Committed)
            assert (key in found) == is_made, f"the table has {sorted(found)}, {story}"
            if isinstance(outcome, Committed):
                self._check_pointer(file_system, outcome.pointer, key, story)
        return True

    def _check_pointer(self, file_system: FileSystem, pointer: Pointer, key: str, story: str) -> None:
        """Check that a commit reports its own metadata file."""
        own: Collection[str] = ()
        with suppress(FileMissing):
            own = self.read(file_system, pointer).properties
        assert key in own, f"the pointer of one thread's commit names another's metadata, {story}"

    def _commit_soon(self, strategy: CommitStrategy, file_system: FileSystem, base: Pointer) -> Outcome:
        """The outcome of a commit on a base, or, if another came first, on the version after it."""
        outcome = self.outcome(strategy, base, self.changed(file_system, base, "other", "1"))
        if not isinstance(outcome, Conflict):
            return outcome
        current = self.pointer(strategy)
        if current is None or current == base:
            return outcome
        return self.outcome(strategy, current, self.changed(file_system, current, "other", "1"))

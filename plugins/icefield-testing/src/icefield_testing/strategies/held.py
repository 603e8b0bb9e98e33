"""Checks of a writer that is held up before each of its changes and requests, while another process goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from icefield.abc import CommitStrategy, Committed, Conflict, FileSystem, Pointer
from icefield.errors import CommitStateUnknown, IcefieldError, NoSuchTable

from icefield_testing.fault_model import STEPS, CallFaults, Hold, Step
from icefield_testing.faults import CHANGES, FaultyFileSystem
from icefield_testing.processes import AnotherProcess
from icefield_testing.service_faults import RequestFaults
from icefield_testing.strategies.base import FaultPlace, StrategyChecks

_PATIENCE = 3
_PAUSE_SECONDS = 0.02


class HeldUpChecks(StrategyChecks):
    """Checks of a writer that stands still, heartbeats included, and of a rival that keeps trying meanwhile."""

    def test_a_writer_that_is_held_up_overwrites_no_other_process(
        self, file_system: FileSystem, location: str, service: RequestFaults | None
    ) -> None:
        """If this fails, a writer looked whether its base is current, was held up, and wrote though another process had
        committed meanwhile: make it one atomic step of the store or the service. A lock of threads keeps no other
        process out."""
        self.needs_processes()
        waits = _Waits(self.hold_seconds, math.inf if self.has_endless_locks else self.lease_seconds)
        advice = (
            f"a writer that is held up keeps another out for {_PATIENCE * self.hold_seconds:g} s, so there is a lock: "
            "state in `lease_seconds` after how long another writer takes it over, or math.inf if it lasts as long as "
            "its holder; where a lease can run out, the store must decide in one atomic step all the same"
        )

        def commit(place: str, base: Pointer, seconds: float) -> str:
            self.in_another_process()
            system = self.copy(file_system)
            strategy = self.strategy(system, place)
            proposal = self.changed(system, base, "other", "1")
            deadline = time.monotonic() + seconds
            while True:
                outcome = self.outcome(strategy, base, proposal)
                is_over = isinstance(outcome, Committed | CommitStateUnknown) or time.monotonic() > deadline
                if is_over or self._has_moved(strategy, base):
                    return _said(outcome)
                time.sleep(_PAUSE_SECONDS)  # a lock may keep it out, until its lease has run out

        with AnotherProcess(commit) as other:
            for place in self.held_places(file_system, service):
                for number in range(STEPS):
                    at = f"{location}/held-{place.name}-{number}"
                    if not self._commits_while_held(file_system, at, place, number, other, waits):
                        break
                    if waits.kept_out and self.lease_seconds is None:  # or the other process is slow
                        longer = _Waits(_PATIENCE * self.hold_seconds, None)
                        self._commits_while_held(file_system, f"{at}-longer", place, number, other, longer)
                        if longer.kept_out:
                            raise pytest.UsageError(advice)

    def test_a_drop_that_is_held_up_does_not_miss_another_process(
        self, file_system: FileSystem, location: str, service: RequestFaults | None
    ) -> None:
        """If this fails, ``drop`` looked at the table, was held up while another process dropped it or committed to it,
        and went on with an old view: two drops succeed, or a dropped table is there. Decide in the atomic step whether
        there is a table to drop."""
        self.needs_processes()
        waits = _Waits(self.hold_seconds, math.inf)

        def act(what: str, place: str, base: Pointer, _seconds: float) -> str:
            self.in_another_process()
            system = self.copy(file_system)
            strategy = self.strategy(system, place)
            if what == "drop":
                return _said(self.dropped(strategy))
            return _said(self.outcome(strategy, base, self.changed(system, base, "other", "1")))

        with AnotherProcess(act) as other:
            for place in self.held_places(file_system, service):
                for what in ("commit", "drop"):
                    for number in range(STEPS):
                        at = f"{location}/{what}-{place.name}-{number}"
                        if not self._drops_while_held(file_system, at, place, number, other, waits, what):
                            break

    # -- helpers

    def held_places(self, file_system: FileSystem, service: RequestFaults | None) -> Iterator[FaultPlace]:
        """The changes of the file system, and the requests to the service, before which a writer can be held up."""
        calls = CallFaults(CHANGES)

        def build(at: str) -> CommitStrategy:
            system = FaultyFileSystem(file_system, calls)
            return self.strategy(system, at) if service is None else self.strategy_through(service, system, at)

        yield FaultPlace("file-system", calls, build, service)
        if service is not None:
            yield FaultPlace("service", service, lambda at: self.strategy_through(service, file_system, at))

    def dropped(self, strategy: CommitStrategy) -> Exception | None:
        """The error of a drop, or None."""
        try:
            strategy.drop()
        except Exception as error:
            return error
        return None

    def _commits_while_held(
        self, file_system: FileSystem, at: str, place: FaultPlace, number: int, other: AnotherProcess, waits: _Waits
    ) -> bool:
        """Whether a commit makes a change or request with this number; the other process commits before it."""
        base = self.create(file_system, at)
        strategy = place.build(at)
        proposal = self.changed(file_system, base, "mine", "1")
        assert self.pointer(strategy) == base  # it has connected, so only the commit is counted
        with held_up(place, number, lambda: waits.let(other, at, base)) as step:
            mine = self.outcome(strategy, base, proposal)
        if not step.reached:
            return False
        theirs = other.answer(self.max_wait_seconds)
        story = f"{step}: mine {mine!r}, the other's {theirs}"
        found = self.properties_now(file_system, at, story)
        assert isinstance(mine, Committed | Conflict | IcefieldError), story
        assert not (isinstance(mine, Committed) and theirs == "Committed"), f"both replaced one base, {story}"
        if not isinstance(mine, CommitStateUnknown):
            assert ("mine" in found) == isinstance(mine, Committed), f"the table has {found}, {story}"
        if not theirs.startswith("CommitStateUnknown"):
            assert ("other" in found) == (theirs == "Committed"), f"the table has {found}, {story}"
        return True

    def _drops_while_held(
        self,
        file_system: FileSystem,
        at: str,
        place: FaultPlace,
        number: int,
        other: AnotherProcess,
        waits: _Waits,
        what: str,
    ) -> bool:
        """Whether a drop makes a change or request with this number; the other process acts before it."""
        base = self.create(file_system, at)
        strategy = place.build(at)
        assert self.pointer(strategy) == base
        with held_up(place, number, lambda: waits.let(other, what, at, base)) as step:
            mine = self.dropped(strategy)
        if not step.reached:
            return False
        theirs = other.answer(self.max_wait_seconds)
        there = self.pointer(self.strategy(file_system, at)) is not None
        story = f"a drop, {step}: {mine!r}; another process, {what}: {theirs}"
        if what == "drop":
            assert not (mine is None and theirs == "done"), f"both dropped one table, {story}"
            has_dropped = mine is None or theirs == "done"
        else:
            has_dropped = mine is None or isinstance(mine, NoSuchTable)
        assert isinstance(mine, IcefieldError | None), f"not one of Icefield's errors: {story}"
        assert not (has_dropped and there), f"said to be dropped, and the table is there: {story}"
        if not isinstance(mine, CommitStateUnknown) and not theirs.startswith("CommitStateUnknown"):
            assert has_dropped or there, f"nobody dropped the table, and it is gone: {story}"
        return True

    def _has_moved(self, strategy: CommitStrategy, base: Pointer) -> bool:
        try:
            return self.pointer(strategy) != base
        except IcefieldError:
            return False


@contextmanager
def held_up(place: FaultPlace, number: int, meanwhile: Callable[[], None]) -> Iterator[Step]:
    """Hold the block up before its request with a number, with all its other requests."""
    hold = Hold(meanwhile)
    if place.others is not None:
        place.others.arm(hold.wait)
    try:
        with Step(place.faults, hold.at(number), number, "held up before") as step:
            yield step
    finally:
        if place.others is not None:
            place.others.disarm()


def _said(outcome: object) -> str:
    if outcome is None:
        return "done"
    name = type(outcome).__name__
    return f"{name}: {outcome}" if isinstance(outcome, BaseException) else name


class _Waits:
    """Waits for another process to act, beyond the end of a lease; less long after a lock without one kept it out."""

    def __init__(self, seconds: float, lease: float | None) -> None:
        self._lasts = lease == math.inf
        self._seconds = seconds if lease is None or self._lasts else max(seconds, 1.25 * lease + 0.5)
        self.kept_out = False

    def let(self, other: AnotherProcess, *asked: object) -> None:
        began = time.monotonic()
        other.ask(*asked, self._seconds)
        other.answers_within(self._seconds + _PAUSE_SECONDS)
        self.kept_out = time.monotonic() - began >= self._seconds
        if self.kept_out and self._lasts:
            self._seconds = max(self._seconds / 4, 0.1)

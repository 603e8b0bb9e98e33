"""Checks of the time after a fault: the next writer, and readers while the storage or the service fails."""

from __future__ import annotations

import time

import pytest
from icefield.abc import Committed, FileSystem
from icefield.errors import CommitStateUnknown, FileMissing, IcefieldError, NoSuchTable

from icefield_testing.fault_model import KINDS, walk
from icefield_testing.faults import Crash
from icefield_testing.service_faults import RequestFaults
from icefield_testing.strategies.base import FaultPlace, StrategyChecks


class FollowingChecks(StrategyChecks):
    """Checks of writers that come after a fault, and of readers that meet one."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_next_writer_finds_a_commit_whole_or_no_trace_of_it(
        self, file_system: FileSystem, location: str, service: RequestFaults | None, kind: str
    ) -> None:
        """If this fails, a commit met a fault, and its reported outcome does not last: it was called a failure and is
        there, or the next writer completes it, undoes it or is kept out. Raise ``CommitStateUnknown`` unless the
        service says that nothing happened, and let no later writer act for one that may be called failed."""
        for place in self.fault_places(file_system, service):
            leaves_locks = self.leaves_locks(place, service, kind)
            table = at = f"{location}/{place.name}-{kind.replace(' ', '-')}"
            self.create(file_system, at)
            for step in walk(place.faults, KINDS[kind], f"{kind} at {place.name}"):
                mine = f"mine-{step.number}"
                strategy = place.build(at)
                base = self.pointer(strategy)  # it has connected, so that only requests of the commit count
                assert base is not None
                proposal = self.changed(file_system, base, mine, "1")
                with step:
                    outcome = self.outcome(strategy, base, proposal)
                story = f"{outcome!r}, {step}"
                before = mine in self.properties_now(file_system, at, story)
                is_unknown = isinstance(outcome, CommitStateUnknown)
                if isinstance(outcome, Committed):
                    assert before, f"said to be committed and is not: {story}"
                elif not is_unknown:
                    assert not before, f"said to have failed and is committed: {story}"
                if leaves_locks:
                    at = f"{table}-{step.number}"
                    self.create(file_system, at)
                    continue
                self.let_next_writer_commit(file_system, at, f"next-{step.number}", story)
                after = mine in self.properties_now(file_system, at, story)
                assert after or not before, f"the next writer undid a commit: {story}"
                assert before or is_unknown or not after, f"the next writer completed a failed commit: {story}"

    @pytest.mark.parametrize("kind", ["lost request", "stays down"])  # a read that is repeated does no harm
    def test_a_lost_read_gives_no_missing_and_no_older_table(
        self, file_system: FileSystem, location: str, service: RequestFaults | None, kind: str
    ) -> None:
        """If this fails, ``load`` takes a request that was lost for a table that is missing, answers with a version
        that it remembers, or lets an error of a library out: raise ``StorageError``."""
        for place in self.fault_places(file_system, service):
            at = f"{location}/read-{place.name}-{kind.replace(' ', '-')}"
            self.create(file_system, at)
            for step in walk(place.faults, KINDS[kind], f"{kind} at {place.name}"):
                strategy = place.build(at)
                self.pointer(strategy)  # it may remember this version
                current = self.commit_until_done(self.strategy(file_system, at), file_system, f"n-{step.number}")
                with step:
                    found = self._found(place, strategy)
                story = f"{found!r}, {step}"
                assert not isinstance(found, NoSuchTable | FileMissing), f"a lost read is a missing table: {story}"
                assert found is not None, f"a lost read is a missing table: {story}"
                if isinstance(found, BaseException):
                    assert isinstance(found, IcefieldError), f"not one of Icefield's errors: {story}"
                else:
                    assert found == current, f"a lost read is answered with another version than {current}: {story}"

    # -- helpers

    def leaves_locks(self, place: FaultPlace, service: RequestFaults | None, kind: str) -> bool:
        """Whether a fault may leave a lock that outlasts the check: nobody can release it while the service is down."""
        return self.has_endless_locks and place.faults is service and kind in ("stays down", "cut off")

    def let_next_writer_commit(self, file_system: FileSystem, location: str, key: str, story: object) -> None:
        """Let another writer set a property; it must get through, whatever a fault has left."""
        deadline = time.monotonic() + self.max_wait_seconds
        last: object = None
        while True:
            strategy = self.strategy(file_system, location)
            base = self.pointer(strategy)
            assert base is not None, f"the table is gone: {story}"
            last = self.outcome(strategy, base, self.changed(file_system, base, key, "1"))
            if isinstance(last, Committed):
                return
            assert time.monotonic() < deadline, f"no later writer gets through: {last!r} after {story}"
            time.sleep(0.01)

    def _found(self, place: FaultPlace, strategy: object) -> object:
        try:
            return self.pointer(strategy)  # type: ignore[arg-type]
        except (Crash, Exception) as error:
            return error

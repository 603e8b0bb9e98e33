"""Checks of faults: requests and replies that are lost, connections that stay down, processes that die."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

import pytest
from icefield.abc import CommitStrategy, Committed, Conflict, FileSystem
from icefield.errors import CommitStateUnknown, IcefieldError, NoSuchTable, StorageError

from icefield_testing.faults import Fault, FaultyFileSystem
from icefield_testing.service_faults import RequestFault, RequestFaults
from icefield_testing.strategies.base import StrategyChecks

_STEPS = 40

_ERRORS: Final[dict[str, Callable[[], BaseException]]] = {
    "storage error": lambda: StorageError("said to have failed"),
    "os error": lambda: OSError(errno.EIO, "Input/output error"),
    "memory error": MemoryError,
    "interrupt": KeyboardInterrupt,
}


class FaultChecks(StrategyChecks):
    """Checks of the reported outcome, and of the remaining files, when something fails."""

    @pytest.mark.parametrize("verdict", ["lose-request", "lose-reply"])
    def test_a_lost_reply_is_settled_or_said_to_be_unknown(
        self, file_system: FileSystem, location: str, verdict: str
    ) -> None:
        """If this fails, a reply that was lost is reported as a conflict, a failure or a success that was none."""
        for step in range(_STEPS):
            place = f"{location}/{verdict}-{step}"
            pointer = self.create(file_system, place)
            faulty = FaultyFileSystem(file_system, _at(step, verdict))
            proposal = self.changed(file_system, pointer, "mine", "1")
            outcome = self.outcome(self.strategy(faulty, place), pointer, proposal)
            self.check_outcome(file_system, place, outcome, faulty.calls)
            if len(faulty.calls) <= step:
                break

    @pytest.mark.parametrize("error", _ERRORS)
    def test_a_step_that_was_done_and_failed_is_not_called_a_failure(
        self, file_system: FileSystem, location: str, error: str
    ) -> None:
        """If this fails, the commit is made, and an error after its atomic step says that it is not, so that a job that
        repeats it doubles its rows: read back after any error of that step, or raise ``CommitStateUnknown``."""
        for step in range(_STEPS):
            place = f"{location}/done-{error.replace(' ', '-')}-{step}"
            pointer = self.create(file_system, place)
            faulty = FaultyFileSystem(file_system, _raises_at(step, _ERRORS[error]()))
            proposal = self.changed(file_system, pointer, "mine", "1")
            outcome: object
            try:
                outcome = self.strategy(faulty, place).commit(pointer, proposal)
            except (KeyboardInterrupt, Exception) as raised:
                outcome = raised
            current = self.pointer(self.strategy(file_system, place))
            assert current is not None, f"the table is gone: {faulty.calls}"
            happened = "mine" in self.read(file_system, current).properties
            story = f"{outcome!r} after {faulty.calls}"
            if isinstance(outcome, Committed):
                assert happened, f"said to be committed and is not: {story}"
            elif not isinstance(outcome, CommitStateUnknown | KeyboardInterrupt):
                assert not happened, f"made, and called a failure: {story}"
            if len(faulty.calls) <= step:
                break

    @pytest.mark.parametrize("verdict", ["lose-request", "lose-reply"])
    def test_a_drop_that_meets_a_fault_says_what_is_so(
        self, file_system: FileSystem, location: str, service: RequestFaults | None, verdict: str
    ) -> None:
        """If this fails, ``drop`` returns and the table is there, or fails and the table is gone: after a lost reply
        look for the table, or raise ``CommitStateUnknown``."""
        for step in range(_STEPS):
            place = f"{location}/drop-{verdict}-{step}"
            self.create(file_system, place)
            if service is None:
                faulty = FaultyFileSystem(file_system, _at(step, verdict))
                outcome = self._dropped(self.strategy(faulty, place))
                made = len(faulty.calls)
            else:
                strategy = self.strategy_through(service, file_system, place)
                self.pointer(strategy)
                service.arm(_only(step, verdict))
                outcome = self._dropped(strategy)
                made = service.count
                service.disarm()
            found = self.pointer(self.strategy(file_system, place))
            story = f"{outcome!r}, {verdict} at step {step} of {made}"
            if outcome is None or isinstance(outcome, NoSuchTable):
                assert found is None, f"said to be dropped, and the table is there: {story}"
            elif not isinstance(outcome, CommitStateUnknown):
                assert isinstance(outcome, IcefieldError), f"not one of Icefield's errors: {story}"
                assert found is not None, f"said to have failed, and the table is gone: {story}"
            if made <= step:
                break

    def test_a_connection_that_stays_down_deletes_nothing_published(
        self, file_system: FileSystem, location: str
    ) -> None:
        """If this fails, a file is deleted whose publication was never answered: readers may have seen it."""
        for step in range(_STEPS):
            place = f"{location}/down-{step}"
            pointer = self.create(file_system, place)
            faulty = FaultyFileSystem(file_system, _from(step, "lose-reply"))
            proposal = self.changed(file_system, pointer, "mine", "1")
            outcome = self.outcome(self.strategy(faulty, place), pointer, proposal)
            self.check_outcome(file_system, place, outcome, faulty.calls)
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
            for step in range(_STEPS):
                place = f"{location}/{when}-{step}"
                pointer = self.create(file_system, place)
                faulty = FaultyFileSystem(file_system, _at(step, when))
                proposal = self.changed(file_system, pointer, "mine", "1")
                outcome = self.outcome(self.strategy(faulty, place), pointer, proposal)
                current = self.pointer(self.strategy(file_system, place))
                assert current is not None, f"the table is gone after {when} {step}: {faulty.calls}"
                assert set(self.read(file_system, current).properties) <= {"mine"}
                if isinstance(outcome, Committed):
                    assert current == outcome.pointer
                # The next writer must succeed, regardless of the remains of the crash.
                self.commit_until_done(self.strategy(file_system, place), file_system, "next")
                if len(faulty.calls) <= step:
                    break

    # -- the service

    @pytest.mark.parametrize("verdict", ["lose-request", "lose-reply"])
    def test_a_lost_reply_of_the_service_is_settled_or_said_to_be_unknown(
        self, file_system: FileSystem, location: str, service: RequestFaults | None, verdict: str
    ) -> None:
        """If this fails, a reply of the database or the service was lost, and what it had done is reported as a
        conflict, a failure, or a success that was none: after a lost reply read back whose commit is there, or raise
        ``CommitStateUnknown``."""
        made = self._commit_at_each_request(
            file_system, f"{location}/{verdict}", service, lambda step: _only(step, verdict)
        )
        assert made, "no request went through `service`: `strategy_through` must lead there"

    def test_a_service_that_stays_down_deletes_nothing_published(
        self, file_system: FileSystem, location: str, service: RequestFaults | None
    ) -> None:
        """If this fails, the metadata file was deleted though the service may have got hold of it: after a lost reply
        that nothing settles, delete nothing."""
        self._commit_at_each_request(file_system, f"{location}/down", service, _down_from)

    @pytest.mark.parametrize("verdict", ["lose-request", "lose-reply"])
    def test_a_creation_whose_reply_was_lost_is_settled_or_said_to_be_unknown(
        self, file_system: FileSystem, location: str, service: RequestFaults | None, verdict: str
    ) -> None:
        """If this fails, a reply to the creation of a table was lost, and and the answer to the second request
        (there is such a table) passes for another's: read back whose it is, or raise ``CommitStateUnknown``."""
        service = self._needs_service(service)
        for step in range(_STEPS):
            place = f"{location}/created-{verdict}-{step}"
            strategy = self.strategy_through(service, file_system, place)
            proposal = self.new_table(place)
            assert self.pointer(strategy) is None
            service.arm(_only(step, verdict))
            outcome = self.outcome(strategy, None, proposal)
            made = service.count
            service.disarm()
            story = f"{outcome!r}, {verdict} of request {step} of {made}"
            found = self.pointer(self.strategy(file_system, place))
            if isinstance(outcome, Committed):
                assert found == outcome.pointer, story
                assert self.read(file_system, outcome.pointer).table_uuid == proposal.metadata.table_uuid, story
            elif not isinstance(outcome, CommitStateUnknown):
                assert isinstance(outcome, Conflict | IcefieldError), f"not one of Icefield's errors: {story}"
                assert found is None, f"said to have failed, and the table is there: {story}"
            if made <= step:
                break

    def _commit_at_each_request(
        self,
        file_system: FileSystem,
        location: str,
        service: RequestFaults | None,
        fault: Callable[[int], RequestFault],
    ) -> int:
        """Commit repeatedly, with the fault at each request in turn; return the number of requests."""
        service = self._needs_service(service)
        for step in range(_STEPS):
            place = f"{location}-{step}"
            pointer = self.create(file_system, place)
            strategy = self.strategy_through(service, file_system, place)
            proposal = self.changed(file_system, pointer, "mine", "1")
            assert self.pointer(strategy) == pointer  # it has connected, so that what is counted is the commit
            service.arm(fault(step))
            outcome = self.outcome(strategy, pointer, proposal)
            made = service.count
            service.disarm()
            self.check_outcome(file_system, place, outcome, f"the fault at request {step} of {made}")
            if made <= step:
                break
        return made

    def _dropped(self, strategy: CommitStrategy) -> Exception | None:
        try:
            strategy.drop()
        except Exception as error:
            return error
        return None

    def _needs_service(self, service: RequestFaults | None) -> RequestFaults:
        """Skip a check of lost replies if the strategy uses only its file system."""
        if service is None:
            pytest.skip("the strategy asks no service (`service`)")
        return service


def _at(step: int, verdict: str) -> Fault:
    return lambda number, _name, _location: verdict if number == step else None


def _raises_at(step: int, error: BaseException) -> Fault:
    return lambda number, _name, _location: error if number == step else None


def _from(step: int, verdict: str) -> Fault:
    return lambda number, _name, _location: verdict if number >= step else None


def _only(step: int, verdict: str) -> RequestFault:
    return lambda number: verdict if number == step else None


def _down_from(step: int) -> RequestFault:
    return lambda number: None if number < step else "lose-reply" if number == step else "lose-request"

"""Checks of a failing service: requests and replies that are lost, a service that stays down."""

from __future__ import annotations

import pytest
from icefield.abc import Committed, Conflict, FileSystem
from icefield.errors import CommitStateUnknown, IcefieldError

from icefield_testing.fault_model import KINDS, FaultKind, late_request, lost_reply, lost_request, stays_down, walk
from icefield_testing.service_faults import LOSE_REPLY, LOSE_REQUEST, RequestFaults
from icefield_testing.strategies.base import StrategyChecks

_LOST = {LOSE_REQUEST: lost_request, LOSE_REPLY: lost_reply}


class LostReplyChecks(StrategyChecks):
    """Checks of the reported outcome when the service fails."""

    @pytest.mark.parametrize("verdict", ["lose-request", "lose-reply"])
    def test_a_lost_reply_of_the_service_is_settled_or_said_to_be_unknown(
        self, file_system: FileSystem, location: str, service: RequestFaults | None, verdict: str
    ) -> None:
        """If this fails, a reply of the database or the service was lost, and what it had done is reported as a
        conflict, a failure, or a success that was none: after a lost reply read back whose commit is there, or raise
        ``CommitStateUnknown``."""
        made = self._commit_at_each_request(file_system, f"{location}/{verdict}", service, _LOST[verdict])
        assert made, "no request went through `service`: `strategy_through` must lead there"

    def test_a_service_that_stays_down_deletes_nothing_published(
        self, file_system: FileSystem, location: str, service: RequestFaults | None
    ) -> None:
        """If this fails, the metadata file was deleted though the service may have got hold of it: after a lost reply
        that nothing settles, delete nothing."""
        self._commit_at_each_request(file_system, f"{location}/down", service, stays_down)

    @pytest.mark.parametrize("kind", ["lost request", "lost reply", "stays down"])
    def test_a_creation_whose_reply_was_lost_is_settled_or_said_to_be_unknown(
        self, file_system: FileSystem, location: str, service: RequestFaults | None, kind: str
    ) -> None:
        """If this fails, a reply to the creation of a table was lost, and and the answer to the second request
        (there is such a table) passes for another's: read back whose it is, or raise ``CommitStateUnknown``."""
        service = self._needs_service(service)
        for step in walk(service, KINDS[kind], kind):
            place = f"{location}/created-{kind.replace(' ', '-')}-{step.number}"
            strategy = self.strategy_through(service, file_system, place)
            proposal = self.new_table(place)
            assert self.pointer(strategy) is None
            with step:
                outcome = self.outcome(strategy, None, proposal)
            story = f"{outcome!r}, {step}"
            found = self.pointer(self.strategy(file_system, place))
            if isinstance(outcome, Committed):
                assert found == outcome.pointer, story
                assert self.read(file_system, outcome.pointer).table_uuid == proposal.metadata.table_uuid, story
            elif not isinstance(outcome, CommitStateUnknown):
                assert isinstance(outcome, Conflict | IcefieldError), f"not one of Icefield's errors: {story}"
                assert found is None, f"said to have failed, and the table is there: {story}"

    @pytest.mark.parametrize("creates", [False, True], ids=["change", "creation"])
    def test_a_commit_that_arrives_late_is_not_called_a_failure(
        self, file_system: FileSystem, location: str, service: RequestFaults | None, creates: bool
    ) -> None:
        """If this fails, the client gave a request up, read back and found nothing, and called the commit a failure;
        then the service executed the request: raise ``CommitStateUnknown`` while the pointer has not moved, since a
        request without a reply may still arrive."""
        service = self._needs_service(service)
        for step in walk(service, late_request, "a late"):
            place = f"{location}/late-{creates:d}-{step.number}"
            pointer = None if creates else self.create(file_system, place)
            strategy = self.strategy_through(service, file_system, place)
            proposal = self.new_table(place) if pointer is None else self.changed(file_system, pointer, "mine", "1")
            assert self.pointer(strategy) == pointer
            with step:
                outcome = self.outcome(strategy, pointer, proposal)
            service.deliver_late()
            self.check_late(file_system, place, outcome, pointer is None, step)

    def test_a_commit_that_arrives_late_undoes_no_other(
        self, file_system: FileSystem, location: str, service: RequestFaults | None
    ) -> None:
        """If this fails, the client gave a request up, another writer committed, and then the service executed the
        request and overwrote that commit: let the request itself compare the pointer with the base."""
        service = self._needs_service(service)
        if self.has_endless_locks:
            pytest.skip("a request that was given up may hold a lock for longer than a check can wait")
        for step in walk(service, late_request, "a late"):
            place = f"{location}/overtaken-{step.number}"
            pointer = self.create(file_system, place)
            strategy = self.strategy_through(service, file_system, place)
            proposal = self.changed(file_system, pointer, "mine", "1")
            assert self.pointer(strategy) == pointer
            with step:
                outcome = self.outcome(strategy, pointer, proposal)
            self.commit_until_done(self.strategy(file_system, place), file_system, "next")
            service.deliver_late()
            found = self.properties_now(file_system, place, step)
            assert "next" in found, f"a commit of another writer is lost: {outcome!r}, {step}"

    def _commit_at_each_request(
        self, file_system: FileSystem, location: str, service: RequestFaults | None, kind: FaultKind
    ) -> int:
        """Commit repeatedly, with the fault at each request in turn; return the number of requests."""
        service = self._needs_service(service)
        for step in walk(service, kind, "the fault"):
            place = f"{location}-{step.number}"
            pointer = self.create(file_system, place)
            strategy = self.strategy_through(service, file_system, place)
            proposal = self.changed(file_system, pointer, "mine", "1")
            assert self.pointer(strategy) == pointer  # it has connected, so only the commit is counted
            with step:
                outcome = self.outcome(strategy, pointer, proposal)
            self.check_outcome(file_system, place, outcome, step)
        return step.made

    def _needs_service(self, service: RequestFaults | None) -> RequestFaults:
        """Skip a check of lost replies if the strategy uses only its file system."""
        if service is None:
            pytest.skip("the strategy asks no service (`service`)")
        return service

"""Checks of ``drop`` under faults, and of freed names."""

from __future__ import annotations

import pytest
from icefield.abc import Committed, FileSystem
from icefield.errors import CommitStateUnknown, IcefieldError, NoSuchTable
from icefield.toolkit import VersionedStrategy

from icefield_testing.fault_model import KINDS, walk
from icefield_testing.service_faults import RequestFaults
from icefield_testing.strategies.following import FollowingChecks
from icefield_testing.strategies.held import HeldUpChecks


class DropChecks(FollowingChecks, HeldUpChecks):
    """Checks of what ``drop`` reports, and of the table afterwards."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_drop_that_meets_a_fault_says_what_is_so(
        self, file_system: FileSystem, location: str, service: RequestFaults | None, kind: str
    ) -> None:
        """If this fails, ``drop`` returns and the table is there, or fails and the table is gone: after a lost reply
        look for the table, or raise ``CommitStateUnknown``."""
        for place in self.fault_places(file_system, service):
            for step in walk(place.faults, KINDS[kind], f"{kind} at {place.name}"):
                at = f"{location}/drop-{place.name}-{kind.replace(' ', '-')}-{step.number}"
                self.create(file_system, at)
                strategy = place.build(at)
                self.pointer(strategy)
                with step:
                    outcome = self.dropped(strategy)
                found = self.pointer(self.strategy(file_system, at))
                story = f"{outcome!r}, {step}"
                if outcome is None or isinstance(outcome, NoSuchTable):
                    assert found is None, f"said to be dropped, and the table is there: {story}"
                elif not isinstance(outcome, CommitStateUnknown):
                    assert isinstance(outcome, IcefieldError), f"not one of Icefield's errors: {story}"
                    assert found is not None, f"said to have failed, and the table is gone: {story}"
                if self.leaves_locks(place, service, kind):
                    continue
                if found is not None:
                    self.let_next_writer_commit(file_system, at, "next", story)
                else:
                    again = self.outcome(self.strategy(file_system, at), None, self.new_table(at))
                    assert isinstance(again, Committed), f"no table can be created after the drop: {again!r}, {story}"

    def test_a_late_purge_spares_the_new_table(self, file_system: FileSystem, location: str) -> None:
        """If this fails, ``purge`` deletes what belongs to a table that was created there after the drop."""
        self.create(file_system, location)
        late = self.strategy(file_system, location)
        late.drop()
        new = self.create(file_system, location)
        late.purge()
        assert self.pointer(self.strategy(file_system, location)) == new, "the new table is gone"
        assert not self.read(file_system, new).properties

    def test_a_purged_table_can_be_created_again(self, file_system: FileSystem, location: str) -> None:
        """If this fails, ``purge`` leaves a claim, a lock or a version behind that keeps the next table out."""
        self.create(file_system, location)
        self.commit_until_done(self.strategy(file_system, location), file_system, "n")
        strategy = self.strategy(file_system, location)
        strategy.drop()
        strategy.purge()
        assert self.pointer(self.strategy(file_system, location)) is None
        again = self.outcome(self.strategy(file_system, location), None, self.new_table(location))
        assert isinstance(again, Committed), f"no table can be created after the purge: {again!r}"

    def test_a_freed_name_can_be_claimed_again(self, file_system: FileSystem, location: str) -> None:
        """If this fails, ``forget`` frees the file of a name and not what ``publish`` keeps besides, so that the name
        of a dropped namespace stays taken; or it fails for a name that is free."""
        if not isinstance(self.strategy(file_system, location), VersionedStrategy):
            pytest.skip("only a `VersionedStrategy` claims names")
        target = f"{location}/.icefield/namespace-v1.json"
        for data in (b'{"a":"1"}', b'{"a":"2"}'):
            published = self._versioned(file_system, location).publish(target, data)
            assert published is not None, "a free name is called taken"
            assert file_system.open_input(published.location).read() == data, "the pointer names another file"
            assert self._versioned(file_system, location).publish(target, b"{}") is None, "a name was claimed twice"
            for _ in range(2):
                self._versioned(file_system, location).forget([target])

    def _versioned(self, file_system: FileSystem, location: str) -> VersionedStrategy:
        strategy = self.strategy(file_system, location)
        assert isinstance(strategy, VersionedStrategy)
        return strategy

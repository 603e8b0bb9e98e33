"""Checks of one writer at a time: creation, conflicts, stale bases, dropped tables."""

from __future__ import annotations

import pickle

import pytest
from icefield.abc import Conflict, FileSystem, FileSystemAbility
from icefield.errors import NoSuchTable

from icefield_testing.strategies.base import StrategyChecks


class SingleWriterChecks(StrategyChecks):
    """Checks of ``load``, ``commit`` and ``drop``."""

    def test_there_is_no_table_before_it_is_created(self, file_system: FileSystem, location: str) -> None:
        """If this fails, ``load`` finds another table's files, or raises where it should answer None."""
        assert self.pointer(self.strategy(file_system, location)) is None

    def test_creating_makes_the_table_visible(self, file_system: FileSystem, location: str) -> None:
        """If this fails, ``commit(None, …)`` returns before the metadata is published."""
        proposal = self.new_table(location)
        made = self.committed(self.strategy(file_system, location).commit(None, proposal))
        assert self.pointer(self.strategy(file_system, location)) == made
        assert self.read(file_system, made).table_uuid == proposal.metadata.table_uuid

    def test_creating_twice_is_a_conflict(self, file_system: FileSystem, location: str) -> None:
        """If this fails, creation is not conditional, and the second creator takes the first one's table away."""
        first, second = self.new_table(location), self.new_table(location)
        made = self.committed(self.strategy(file_system, location).commit(None, first))
        assert isinstance(self.strategy(file_system, location).commit(None, second), Conflict)
        assert self.pointer(self.strategy(file_system, location)) == made
        assert self.read(file_system, made).table_uuid == first.metadata.table_uuid

    def test_each_commit_moves_the_pointer(self, file_system: FileSystem, location: str) -> None:
        """If this fails, ``commit`` publishes under a name that ``load`` does not find."""
        pointer = self.create(file_system, location)
        for number in range(1, 13):
            strategy = self.strategy(file_system, location)
            pointer = self.committed(strategy.commit(pointer, self.changed(file_system, pointer, f"n{number}", "1")))
            assert self.pointer(strategy) == pointer
            assert self.pointer(self.strategy(file_system, location)) == pointer
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
        assert self.pointer(self.strategy(file_system, location)) == new
        assert "loser" not in self.read(file_system, new).properties

    def test_a_dropped_table_is_gone_and_can_be_created_again(self, file_system: FileSystem, location: str) -> None:
        """If this fails, ``drop`` leaves a version or a hint that ``load`` still finds."""
        pointer = self.create(file_system, location)
        for number in range(3):
            changed = self.changed(file_system, pointer, f"n{number}", "1")
            pointer = self.committed(self.strategy(file_system, location).commit(pointer, changed))
        self.strategy(file_system, location).drop()
        assert self.pointer(self.strategy(file_system, location)) is None
        with pytest.raises(NoSuchTable):
            self.strategy(file_system, location).drop()
        again = self.new_table(location)
        made = self.committed(self.strategy(file_system, location).commit(None, again))
        assert self.read(file_system, made).table_uuid == again.metadata.table_uuid

    def test_a_commit_on_a_dropped_table_does_not_revive_it(self, file_system: FileSystem, location: str) -> None:
        """If this fails, a stalled writer publishes a version of no table."""
        pointer = self.create(file_system, location)
        late = self.changed(file_system, pointer, "late", "1")
        self.strategy(file_system, location).drop()
        assert isinstance(self.strategy(file_system, location).commit(pointer, late), Conflict)
        assert self.pointer(self.strategy(file_system, location)) is None

    def test_a_commit_on_a_created_again_table_is_a_conflict(self, file_system: FileSystem, location: str) -> None:
        """If this fails, a stalled writer of the dropped table overwrites the new one of the same name."""
        pointer = self.create(file_system, location)
        late = self.changed(file_system, pointer, "late", "1")
        self.strategy(file_system, location).drop()
        new = self.create(file_system, location)
        assert isinstance(self.strategy(file_system, location).commit(pointer, late), Conflict)
        assert self.pointer(self.strategy(file_system, location)) == new
        assert "late" not in self.read(file_system, new).properties

    def test_a_pointer_pickles(self, file_system: FileSystem, location: str) -> None:
        """If this fails, a pointer holds more than strings and a number."""
        pointer = self.create(file_system, location)
        assert pickle.loads(pickle.dumps(pointer)) == pointer

    def test_storage_that_cannot_keep_the_promise_is_refused_by_needs(self, file_system: FileSystem) -> None:
        """If this fails, the class does not declare in ``needs`` what its atomic step rests on."""
        strategy = type(self.strategy(file_system, "memory://needs"))
        assert all(isinstance(need, FileSystemAbility) for need in strategy.needs)
        assert not strategy.needs or file_system.abilities.intersection(strategy.needs)

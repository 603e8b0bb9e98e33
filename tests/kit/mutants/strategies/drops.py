"""Strategies of tables on a file system that drop, purge or free names wrongly, on purpose."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from icefield.abc import Pointer, PutMode
from icefield.builtin.strategies import CreateStrategy
from icefield.errors import FileExists, NoSuchTable, StorageError
from icefield.metadata import TableMetadata

from mutants import Mutant, of


class RevivesDroppedTables(CreateStrategy):
    """Frees the names of a dropped table, and does not check whether its base still exists."""

    def drop(self) -> None:
        if self.load() is None:
            raise NoSuchTable("no table")
        self.file_system.delete_many([location for _, location in self.listed()])

    def confirmed(self, base: Pointer, metadata: TableMetadata) -> Pointer | None:
        return base


class DropsBlindly(CreateStrategy):
    """Drops a table, and hides errors of the file system."""

    def drop(self) -> None:
        with suppress(StorageError):
            super().drop()


class DropsTheLastVersion(CreateStrategy):
    """Deletes only the current version of a table that is dropped."""

    def drop(self) -> None:
        current = self.load()
        if current is None:
            raise NoSuchTable("no table")
        self.file_system.delete_many([current.location])


class DropsTheVersionsItSaw(CreateStrategy):
    """Lists the versions and deletes them, and not the version that another writer adds meanwhile."""

    def drop(self) -> None:
        seen = [location for _, location in self.listed()]
        if not seen:
            raise NoSuchTable("no table")
        self.file_system.delete_many([location for location in seen if self.exists(location)])


class ForgetsNoClaims(CreateStrategy):
    """Claims a name with a second file, and leaves this file when the name is freed."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        try:
            self.file_system.put(f"{target}.claim", b"", PutMode.CREATE)
        except FileExists:
            return None
        return super().publish(target, data)


class PurgeLeavesClaims(ForgetsNoClaims):
    """Leaves the claims of a purged table, so that the next table cannot have its versions."""


class ForgetsOnlyTakenNames(CreateStrategy):
    """Fails to free a name that is free already."""

    def forget(self, targets: Iterable[str]) -> None:
        for target in targets:
            self.file_system.stat(target)
            self.file_system.delete_many([target])


class PurgesTheNewTable(CreateStrategy):
    """Purges every version that is there, also those of the next table."""

    def purge(self) -> None:
        self.forget([location for _, location in self.listed()])


DROPPED = "test_a_dropped_table_is_gone_and_can_be_created_again"
FREED = "test_a_freed_name_can_be_claimed_again"

MUTANTS: list[Mutant] = of(
    {
        RevivesDroppedTables: ("test_a_commit_on_a_dropped_table_does_not_revive_it", "a stalled writer"),
        DropsBlindly: ("test_a_drop_that_meets_a_fault_says_what_is_so", "said to be dropped, and the table is there"),
        DropsTheLastVersion: (DROPPED, "leaves a version"),
        DropsTheVersionsItSaw: (
            "test_a_drop_that_is_held_up_does_not_miss_another_process",
            "said to be dropped, and the table is there",
        ),
        ForgetsNoClaims: (FREED, "a free name is called taken"),
        ForgetsOnlyTakenNames: (FREED, "it fails for a name that is free"),
        PurgeLeavesClaims: ("test_a_purged_table_can_be_created_again", "no table can be created after the purge"),
        PurgesTheNewTable: ("test_a_late_purge_spares_the_new_table", "the new table is gone"),
    }
)

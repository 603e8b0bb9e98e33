"""Catalogs that do one thing wrong with changes of several tables."""

from __future__ import annotations

import time
from collections.abc import Sequence

from dictionary_catalog import LOCK, DictionaryBackend, WholeDictionaryBackend
from icefield.abc import Committed, Conflict, TableChange

from mutants import Mutant, of


class LeavesTheLastTableOut(WholeDictionaryBackend):
    def commit_tables(self, changes: Sequence[TableChange]) -> tuple[Committed, ...] | Conflict:
        made = super().commit_tables(changes[:1])
        return made if isinstance(made, Conflict) else (*made, *(Committed(self.staged(each)) for each in changes[1:]))


class ChangesSeveralThoughItSaysItCannot(DictionaryBackend):
    commit_tables = WholeDictionaryBackend.commit_tables
    staged = WholeDictionaryBackend.staged
    made = WholeDictionaryBackend.made
    _changing = WholeDictionaryBackend._changing


class KeepsOldMetadataFiles(WholeDictionaryBackend):
    def made(self, change: TableChange) -> None:
        pass


class ChangesOnlyWhatIsThere(WholeDictionaryBackend):
    def commit_tables(self, changes: Sequence[TableChange]) -> tuple[Committed, ...] | Conflict:
        return Conflict() if any(each.base is None for each in changes) else super().commit_tables(changes)


class CommitsOneAfterTheOther(WholeDictionaryBackend):
    def commit_tables(self, changes: Sequence[TableChange]) -> tuple[Committed, ...] | Conflict:
        made = []
        for change in changes:
            one = super().commit_tables([change])
            if isinstance(one, Conflict):
                return one
            made += one
        return tuple(made)


class SwapsInSeveralSteps(WholeDictionaryBackend):
    """Compares all bases before it swaps any pointer, so other commits may come in between."""

    def commit_tables(self, changes: Sequence[TableChange]) -> tuple[Committed, ...] | Conflict:
        staged = [self.staged(change) for change in changes]
        with LOCK:
            pointers = self.store.pointers
            if any(pointers.get(each.table) != (each.base.location if each.base else None) for each in changes):
                return Conflict()
        for change, pointer in zip(changes, staged, strict=True):
            time.sleep(0.02)
            self.store.pointers[change.table] = pointer.location
        return tuple(map(Committed, staged))


MUTANTS: list[Mutant] = of(
    {
        LeavesTheLastTableOut: ("test_several_tables_change_in_one_step_or_are_refused", "leaves a table out"),
        ChangesSeveralThoughItSaysItCannot: (
            "test_several_tables_change_in_one_step_or_are_refused",
            "subclass MultiTableCatalog",
        ),
        KeepsOldMetadataFiles: (
            "test_several_tables_lose_their_old_metadata_files_where_a_property_says_so",
            "3 of 3 old metadata files of a.t are left",
        ),
        ChangesOnlyWhatIsThere: (
            "test_a_table_is_created_together_with_a_change_of_another",
            "a change without a base",
        ),
        CommitsOneAfterTheOther: ("test_a_conflict_of_one_table_leaves_all_as_they_were", "one after the other"),
        SwapsInSeveralSteps: ("test_of_racing_changes_of_several_tables_each_is_whole", "the change of another writer"),
    }
)

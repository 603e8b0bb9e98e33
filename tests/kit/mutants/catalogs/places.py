"""Catalogs that put tables in one place, in no namespace, or that leave files of refused changes."""

from __future__ import annotations

from collections.abc import Sequence

from dictionary_catalog import LOCK, DictionaryBackend, DictionaryStrategy, WholeDictionaryBackend
from icefield.abc import Committed, Conflict, CurrentView, Pointer, Proposal, TableChange, TableName, ViewProposal
from icefield.metadata import encode_view_metadata

from mutants import Mutant, of

PLACE = "test_each_table_has_a_location_of_its_own"
NAMESPACE = "test_a_table_is_created_in_a_namespace_only"
REVIVED = "test_a_table_or_view_that_is_gone_is_not_revived"
NAME = "test_a_table_that_is_refused_its_name_leaves_no_file"
LEFT = "test_a_refused_change_leaves_no_file"


class EndsLocationsWithASlash(DictionaryBackend):
    def table_location(self, table: TableName) -> str:
        return super().table_location(table) + "/"


class UsesOneLocationForAName(DictionaryBackend):
    """The namespace is left out of the location."""

    def table_location(self, table: TableName) -> str:
        super().table_location(table)
        return "/".join((self.properties["warehouse"], table[-1]))


class PutsAllTablesIntoOneFolder(DictionaryBackend):
    def table_location(self, table: TableName) -> str:
        return super().table_location(table).rpartition("/")[0]


class PutsTablesIntoTables(DictionaryBackend):
    """The location of a.b.t is in that of the table a.t."""

    def table_location(self, table: TableName) -> str:
        super().table_location(table)
        return "/".join((self.properties["warehouse"], table[0], table[-1], *table[1:-1]))


class _ChecksNoNamespace(DictionaryStrategy):
    def check_free(self) -> None:
        pass


class CreatesTablesNowhere(DictionaryBackend):
    strategy_class = _ChecksNoNamespace


class _LooksWhenBuilt(_ChecksNoNamespace):
    pass


class LooksForTheNamespaceWhenAsked(DictionaryBackend):
    """Looks for the namespace in ``strategy``, although it may be dropped before the commit."""

    def strategy(self, table: TableName, location: str | None = None) -> DictionaryStrategy:
        if location is not None:
            self.check(table[:-1])
        place = location or self.properties["warehouse"]
        return _LooksWhenBuilt(table, place, self.io.storage(place), self.properties)


class _Revives(DictionaryStrategy):
    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        with LOCK:
            return super().swap_pointer(old if self.table in self.pointers else None, new, proposal)


class RevivesTables(DictionaryBackend):
    strategy_class = _Revives


class _RevivesRenamed(DictionaryStrategy):
    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        with LOCK:
            is_elsewhere = old in self.pointers.values()
            return super().swap_pointer(
                None if is_elsewhere and self.table not in self.pointers else old, new, proposal
            )


class RevivesRenamedTables(DictionaryBackend):
    strategy_class = _RevivesRenamed


class _KeepsItsFile(DictionaryStrategy):
    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        staged = self.stage(base, proposal)
        if self.swap_pointer(base.location if base else None, staged.location, proposal):
            return Committed(staged)
        return Conflict()


class LeavesFilesOfTables(DictionaryBackend):
    strategy_class = _KeepsItsFile


class _KeepsTheFileOfAnError(DictionaryStrategy):
    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        staged = self.stage(base, proposal)
        if self.swap_pointer(base.location if base else None, staged.location, proposal):
            return Committed(staged)
        self.file_system.delete_many([staged.location])
        return Conflict()


class LeavesFilesOfTablesOverViews(WholeDictionaryBackend):
    strategy_class = _KeepsTheFileOfAnError


class LeavesFilesOfTablesInNoNamespace(DictionaryBackend):
    strategy_class = _KeepsTheFileOfAnError


class LeavesFilesOfSeveralTables(WholeDictionaryBackend):
    def commit_tables(self, changes: Sequence[TableChange]) -> tuple[Committed, ...] | Conflict:
        staged = [self.staged(change) for change in changes]
        with LOCK:
            pointers = self.store.pointers
            if any(pointers.get(each.table) != (each.base.location if each.base else None) for each in changes):
                return Conflict()
            pointers.update({each.table: made.location for each, made in zip(changes, staged, strict=True)})
        return tuple(map(Committed, staged))


class DeletesOneOfSeveralFiles(WholeDictionaryBackend):
    def commit_tables(self, changes: Sequence[TableChange]) -> tuple[Committed, ...] | Conflict:
        made = super().commit_tables(changes)
        if isinstance(made, Conflict):
            self.staged(changes[-1])
        return made


class LeavesFilesOfViews(WholeDictionaryBackend):
    def commit_view(self, view: TableName, base: CurrentView | None, proposal: ViewProposal) -> CurrentView | None:
        made = super().commit_view(view, base, proposal)
        if made is None:
            location = f"{proposal.metadata.location}/metadata/left.metadata.json"
            with self.io.open_output(location) as sink:
                sink.write(encode_view_metadata(proposal.metadata))
        return made


MUTANTS: list[Mutant] = of(
    {
        EndsLocationsWithASlash: (PLACE, "the location of a.t ends with a slash"),
        UsesOneLocationForAName: (PLACE, "b.t would be in the folder of a.t"),
        PutsAllTablesIntoOneFolder: (PLACE, "a.u would be in the folder of a.t"),
        PutsTablesIntoTables: (PLACE, "a.b.t would be in the folder of a.t"),
        CreatesTablesNowhere: (NAMESPACE, "created in a dropped namespace, and no listing leads to it"),
        LooksForTheNamespaceWhenAsked: (NAMESPACE, "created in a dropped namespace, and no listing leads to it"),
        RevivesTables: (REVIVED, "a commit to a table that is dropped"),
        RevivesRenamedTables: (REVIVED, "a commit to a table that is renamed"),
        LeavesFilesOfTables: (LEFT, "a change of a table on an old base is refused, and 1 files are left"),
        LeavesFilesOfTablesOverViews: (NAME, "the creation of a table over a view is refused, and 1 files are left"),
        LeavesFilesOfTablesInNoNamespace: (NAME, "in a namespace that is dropped is refused, and 1 files are left"),
        LeavesFilesOfSeveralTables: (
            LEFT,
            "a change of several tables is refused, and 2 files are left",
        ),
        DeletesOneOfSeveralFiles: (
            LEFT,
            "a change of several tables is refused, and 1 files are left",
        ),
        LeavesFilesOfViews: (
            LEFT,
            "is refused, and 1 files are left",
        ),
    }
)

"""Changes of tables by the updates and requirements of the REST catalog protocol, through the one commit loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from icefield.abc import CatalogBackend, CommitStrategy, Proposal, ServedCatalog, TableName
from icefield.catalog import deferred
from icefield.catalog.identifiers import table_name
from icefield.catalog.table import Table
from icefield.catalog.telling import told
from icefield.commit import TableHandle, TableState, load_table
from icefield.errors import InvalidArgument, NoSuchTable, TableExists
from icefield.metadata import TableMetadata
from icefield.metadata.properties import check_properties
from icefield.storage import FileIO
from icefield.storage.neighbours import check_location, check_move

if TYPE_CHECKING:
    from icefield.catalog.transaction import CheckTable, Staged, TableUpdates
    from icefield.metadata import TableRequirement, TableUpdate


class ChangesOfCatalog:
    """The methods of ``Catalog`` that take the protocol's updates."""

    _backend: CatalogBackend
    _io: FileIO

    def commit_table(
        self,
        identifier: str | Iterable[str],
        updates: Iterable[TableUpdate],
        requirements: Iterable[TableRequirement] = (),
        *,
        judge: CheckTable | None = None,
    ) -> Table:
        """Change a table by updates of the REST catalog protocol; the requirement ``assert-create`` creates it.

        If another commit comes first, the requirements are checked against the new version and the updates are applied
        to it. For each attempt ``judge`` is called with the table's name and its metadata before and after the change;
        it raises to refuse the change. With a judge, the commit deletes no old metadata files. Raises ``NoSuchTable``,
        ``TableExists``, ``CommitFailed``, ``ValidationFailed``, ``InvalidArgument``, ``CommitStateUnknown``.
        """
        change = deferred.TableUpdates(table_name(identifier), self._checked(updates), tuple(requirements), judge)
        if change.creates:
            created = self._created(change)
            return Table(created.handle, deferred.commit_table(created.handle, None, lambda _: created.proposal))
        handle, base = self._loaded(change.table)
        if change.moves:
            self._check_move(handle, base, change.applied(base.metadata))
        return Table(handle, deferred.commit_table(handle, base, change.proposal))

    def commit_tables(
        self,
        changes: Sequence[tuple[Any, Iterable[TableUpdate], Iterable[TableRequirement]]],
        *,
        judge: CheckTable | None = None,
    ) -> None:
        """Change several tables in one step: all of it is visible, or nothing.

        Each change is a table's name, its updates and its requirements; see ``commit_table`` for ``judge``. Raises
        ``NotSupportedByCatalog`` if the catalog cannot do this, and the errors of ``commit_table``.
        """
        backend = deferred.changes_several(self._backend)
        given = [
            deferred.TableUpdates(table_name(name), self._checked(steps), tuple(asked), judge)
            for name, steps, asked in changes
        ]
        if len({change.table for change in given}) != len(given):
            raise InvalidArgument("a change of several tables names each table once")
        known: dict[TableName, TableState] = {}
        deferred.settle_tables(
            deferred.ChangeOfTables(backend, lambda: [self._staged(change, known) for change in given]),
            {change.table: "create-table" if change.creates else "commit" for change in given},
        )

    def _checked(self, updates: Iterable[TableUpdate]) -> tuple[TableUpdate, ...]:
        """The updates. Raises ``InvalidArgument`` for the value of a property that a plugin refuses."""
        given = tuple(updates)
        for update in given:
            if isinstance(update, deferred.SetProperties):
                self._io.plugins.table_properties.check(check_properties(update.updates))
        return given

    def _staged(self, change: TableUpdates, known: dict[TableName, TableState]) -> Staged:
        if change.creates:
            return self._created(change)
        handle, base = self._loaded(change.table, known.get(change.table))
        proposal = change.proposal(base.metadata)
        if proposal is not None:
            if change.moves and change.table not in known:
                self._check_move(handle, base, proposal.metadata)
            proposal = replace(proposal, metadata=handle.logged(proposal.metadata, base))
        known[change.table] = base
        return deferred.Staged(handle, base, proposal)

    @told("load-table")
    def _loaded(self, name: TableName, known: TableState | None = None) -> tuple[TableHandle, TableState]:
        """A table at its current version; its metadata is read unless it is ``known``. Raises ``NoSuchTable``."""
        handle = TableHandle(name, self._io, self._backend.strategy(name))
        state = load_table(handle, known)
        if state is None:
            raise NoSuchTable(f"no table {'.'.join(name)} in catalog '{self._backend.name}'", table=name)
        return handle, state

    def _check_absent(self, name: TableName, strategy: CommitStrategy) -> None:
        if strategy.load() is not None:
            raise TableExists(f"table {'.'.join(name)} exists already in catalog '{self._backend.name}'", table=name)

    def _check_move(self, handle: TableHandle, base: TableState, changed: TableMetadata) -> None:
        """Call ``check_move``, unless a service manages the metadata and checks the move itself."""
        if not isinstance(self._backend, ServedCatalog):
            check_move(handle.io, handle.writable(), base.metadata, changed, base.pointer.location)

    def _created(self, change: TableUpdates) -> Staged:
        """The creation of a table. Raises ``TableExists``, and the errors for a location that is taken."""
        metadata = change.applied(None)
        self._backend.table_location(change.table)  # raises if the namespace does not exist
        strategy = self._backend.strategy(change.table, metadata.location)
        self._check_absent(change.table, strategy)
        if not isinstance(self._backend, ServedCatalog):
            check_location(self._io, strategy, metadata.location)
        handle = TableHandle(change.table, self._io.relative_to(metadata.location), strategy)
        return deferred.Staged(handle, None, Proposal(metadata, change.updates, change.requirements))

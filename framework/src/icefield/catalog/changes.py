"""Changes of tables by the updates and requirements of the REST catalog protocol, through the one commit loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from icefield.abc import CatalogAbility, CatalogBackend, Conflict, Proposal, TableChange, TableName
from icefield.catalog.identifiers import string_of, table_name
from icefield.catalog.table import Table
from icefield.commit import TableHandle, commit_table, load_table
from icefield.errors import CommitFailed, InvalidArgument, NoSuchTable, NotSupportedByCatalog, TableExists
from icefield.metadata import TableMetadata, with_metadata_log
from icefield.metadata.requirements import AssertCreate, TableRequirement, check
from icefield.metadata.updates import AddSchema, TableUpdate, apply_updates, created_by
from icefield.storage import FileIO

_TRIES = 10


@dataclass(frozen=True, slots=True)
class TableUpdates:
    """A change of one table: the protocol's updates, and the requirements that they rely on."""

    table: TableName
    updates: tuple[TableUpdate, ...]
    requirements: tuple[TableRequirement, ...] = ()

    @property
    def creates(self) -> bool:
        """Whether the table must not exist yet."""
        return any(isinstance(requirement, AssertCreate) for requirement in self.requirements)

    def applied(self, base: TableMetadata | None) -> TableMetadata:
        """The metadata after the change, whose requirements hold. Raises what ``check`` and ``apply_updates`` raise."""
        check(self.requirements, base)
        if base is None:
            return created_by(self.updates)
        return apply_updates(base, (_without_old_number(update, base) for update in self.updates))


def _without_old_number(update: TableUpdate, base: TableMetadata) -> TableUpdate:
    """An update without a last column id below the table's: Java states that of the new schema, which means nothing."""
    if isinstance(update, AddSchema) and (update.last_column_id or 0) < base.last_column_id:
        return AddSchema(update.schema)
    return update


class ChangesOfCatalog:
    """The methods of ``Catalog`` that take the protocol's updates."""

    _backend: CatalogBackend
    _io: FileIO

    def commit_table(
        self,
        identifier: str | Iterable[str],
        updates: Iterable[TableUpdate],
        requirements: Iterable[TableRequirement] = (),
    ) -> Table:
        """Change a table by updates of the REST catalog protocol; the requirement ``assert-create`` creates it.

        Where another commit comes first, the requirements are checked against what it left and the updates applied to
        that. Raises ``NoSuchTable``, ``TableExists``, ``CommitFailed``, ``ValidationFailed``, ``InvalidArgument``,
        ``CommitStateUnknown``.
        """
        change = TableUpdates(table_name(identifier), tuple(updates), tuple(requirements))
        if change.creates:
            return self._created(change)
        handle = TableHandle(change.table, self._io, self._backend.strategy(change.table))
        base = load_table(handle)
        if base is None:
            raise NoSuchTable(
                f"no table {string_of(change.table)} in catalog '{self._backend.name}'", table=change.table
            )

        def build(metadata: TableMetadata | None) -> Proposal | None:
            assert metadata is not None
            changed = change.applied(metadata)
            return None if changed is metadata else Proposal(changed, change.updates, change.requirements, metadata)

        return Table(handle, commit_table(handle, base, build))

    def commit_tables(self, changes: Sequence[tuple[Any, Iterable[TableUpdate], Iterable[TableRequirement]]]) -> None:
        """Change several tables in one step: all of it is visible, or nothing.

        Each change is a table's name, its updates and its requirements. Raises ``NotSupportedByCatalog`` where the
        catalog cannot, and else what ``commit_table`` raises.
        """
        if CatalogAbility.MULTI_TABLE not in self._backend.abilities:
            raise NotSupportedByCatalog(f"catalog '{self._backend.name}' cannot change several tables in one step")
        given = [TableUpdates(table_name(name), tuple(steps), tuple(asked)) for name, steps, asked in changes]
        if len({change.table for change in given}) != len(given):
            raise InvalidArgument("a change of several tables names each table once")
        for _ in range(_TRIES):
            if self._commit_all(given):
                return
        names = ", ".join(string_of(change.table) for change in given)
        raise CommitFailed(f"a change of the tables {names:.500} lost to other commits {_TRIES} times")

    def _commit_all(self, changes: Sequence[TableUpdates]) -> bool:
        staged = [staged for change in changes if (staged := self._staged(change)) is not None]
        if not staged:
            return True
        outcome = self._backend.commit_tables(staged)
        return not isinstance(outcome, Conflict)

    def _staged(self, change: TableUpdates) -> TableChange | None:
        handle = TableHandle(change.table, self._io, self._backend.strategy(change.table))
        base = load_table(handle)
        if base is None and not change.creates:
            raise NoSuchTable(
                f"no table {string_of(change.table)} in catalog '{self._backend.name}'", table=change.table
            )
        if base is not None and change.creates:
            raise TableExists(f"table {string_of(change.table)} exists already", table=change.table)
        before = None if base is None else base.metadata
        metadata = change.applied(before)
        if base is None:
            return TableChange(change.table, None, Proposal(metadata, change.updates, change.requirements))
        if metadata is before:
            return None
        replaced = handle.io.unmapped(base.pointer.location, base.metadata.location)
        logged = with_metadata_log(metadata, replaced, base.metadata.last_updated_ms)
        proposal = Proposal(logged, change.updates, change.requirements, base.metadata)
        return TableChange(change.table, base.pointer, proposal)

    def _no_table(self, name: TableName) -> NoSuchTable:
        return NoSuchTable(f"no table {string_of(name)} in catalog '{self._backend.name}'", table=name)

    def _created(self, change: TableUpdates) -> Table:
        metadata = change.applied(None)
        self._backend.table_location(change.table)  # the namespace is there
        strategy = self._backend.strategy(change.table, metadata.location)
        if strategy.load() is not None:
            raise TableExists(
                f"table {string_of(change.table)} exists already in catalog '{self._backend.name}'", table=change.table
            )
        handle = TableHandle(change.table, self._io.relative_to(metadata.location), strategy)
        state = commit_table(handle, None, lambda _: Proposal(metadata, change.updates, change.requirements))
        return Table(handle, state)

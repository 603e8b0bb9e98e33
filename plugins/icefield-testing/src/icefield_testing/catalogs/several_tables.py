"""Checks of changes of several tables in one step."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from icefield import Catalog
from icefield.abc import CatalogBackend, Conflict, MultiTableCatalog, Pointer, TableChange, TableName
from icefield.commit import change_of, current_of
from icefield.errors import CommitFailed, CommitStateUnknown, NotSupportedByCatalog
from icefield.metadata import (
    AddSchema,
    AssertCurrentSchemaId,
    AssertLastAssignedFieldId,
    SetCurrentSchema,
    SetProperties,
    TableMetadata,
    TableUpdate,
)
from icefield.schema import Schema
from icefield.types import LongType, NestedField

from icefield_testing.catalogs.base import RACERS, SCHEMA, CatalogChecks

_ROUNDS = 3
"""A race may end well by chance: about one of six does."""

TABLES: tuple[TableName, ...] = (("a", "t"), ("a", "u"))


class SeveralTablesChecks(CatalogChecks):
    """Checks of ``commit_tables``, for a ``MultiTableCatalog``."""

    def test_several_tables_change_in_one_step_or_are_refused(self, backend: CatalogBackend) -> None:
        """If this fails, ``commit_tables`` leaves a table out, or changes tables without declaring ``MULTI_TABLE``."""
        self._two_tables(backend)
        changes = [self._table_change(backend, name, {"by": "me"}) for name in TABLES]
        if not isinstance(backend, MultiTableCatalog):
            assert not hasattr(backend, "commit_tables"), "nothing calls it: subclass MultiTableCatalog"
            with pytest.raises(NotSupportedByCatalog):
                Catalog(backend).commit_tables([(each.table, each.proposal.updates, ()) for each in changes])
            assert self._values(backend, "by") == [None, None]
            return
        made = backend.commit_tables(changes)
        assert not isinstance(made, Conflict)
        assert len(made) == len(changes), "a result for each of the changes, in their order"
        for name, each in zip(TABLES, made, strict=True):
            current = current_of(backend.strategy(name))
            assert current is not None
            assert each.pointer == current.pointer
        assert self._values(self.another(backend), "by") == ["me", "me"]

    def test_a_table_is_created_together_with_a_change_of_another(self, backend: CatalogBackend) -> None:
        """If this fails, ``commit_tables`` does not take a change without a base, which creates its table."""
        backend = self._with_several(backend)
        self._two_tables(backend)
        new = ("a", "new")
        creation = TableChange(new, None, self._table_creation(backend, new))
        made = backend.commit_tables([creation, self._table_change(backend, TABLES[0], {"by": "me"})])
        assert not isinstance(made, Conflict)
        assert self._metadata_of(backend, new).table_uuid == creation.proposal.metadata.table_uuid
        assert self._values(backend, "by") == ["me", None]

    @pytest.mark.parametrize("late", [0, 1])
    def test_a_conflict_of_one_table_leaves_all_as_they_were(self, backend: CatalogBackend, late: int) -> None:
        """If this fails, tables are changed one after the other, or the base of one of them is not compared."""
        backend = self._with_several(backend)
        self._two_tables(backend)
        changes = [self._table_change(backend, name, {"by": "me"}) for name in TABLES]
        self._evolve(backend, TABLES[late])
        assert isinstance(backend.commit_tables(changes), Conflict)
        assert self._values(backend, "by") == [None, None]

    def test_of_racing_changes_of_several_tables_each_is_whole(self, backend: CatalogBackend) -> None:
        """If this fails, the tables are swapped in several steps, so that each shows the change of another writer."""
        backend = self._with_several(backend)
        self._two_tables(backend)
        for _ in range(_ROUNDS):
            self._race(backend)

    def _race(self, backend: MultiTableCatalog) -> None:
        bases = {name: self._loaded(backend, name) for name in TABLES}

        def change(number: int) -> bool:
            mine = [_change_on(name, base, {"by": str(number)}) for name, base in bases.items()]
            try:
                # Both orders are used, since two writers need not name tables in the same order.
                return not isinstance(backend.commit_tables(mine[:: 1 if number % 2 else -1]), Conflict)
            except (CommitFailed, CommitStateUnknown):
                return False

        with ThreadPoolExecutor(RACERS) as pool:
            won = list(pool.map(change, range(RACERS)))
        assert any(won), "of several writers on one base one wins"
        first, second = self._values(backend, "by")
        assert first == second, "one table shows the change of another writer than the other"
        assert won[int(first or 0)], "the change that is visible was said to be lost"

    def _with_several(self, backend: CatalogBackend) -> MultiTableCatalog:
        if not isinstance(backend, MultiTableCatalog):
            pytest.skip("the backend is no MultiTableCatalog")
        return backend

    def _two_tables(self, backend: CatalogBackend) -> None:
        backend.create_namespace(("a",), {})
        for name in TABLES:
            self.create_table(backend, name)

    def _table_change(self, backend: CatalogBackend, name: TableName, properties: dict[str, str]) -> TableChange:
        """A change that conflicts with that of ``_evolve``.

        A strategy compares its base, and a service checks its requirements: ``_evolve`` changes both.
        """
        return _change_on(name, self._loaded(backend, name), properties)

    def _evolve(self, backend: CatalogBackend, name: TableName) -> None:
        """Another writer adds a column."""
        wider = Schema(*SCHEMA.fields, NestedField(2, "more", LongType()))
        updates: Sequence[TableUpdate] = (AddSchema(wider), SetCurrentSchema())
        pointer, base = self._loaded(backend, name)
        made = backend.strategy(name).commit(pointer, change_of(base, updates))
        assert not isinstance(made, Conflict)

    def _values(self, backend: CatalogBackend, key: str) -> list[str | None]:
        return [self._metadata_of(backend, name).properties.get(key) for name in TABLES]


def _change_on(name: TableName, base: tuple[Pointer, TableMetadata], properties: dict[str, str]) -> TableChange:
    pointer, metadata = base
    required = (AssertCurrentSchemaId(metadata.current_schema_id), AssertLastAssignedFieldId(metadata.last_column_id))
    return TableChange(name, pointer, change_of(metadata, [SetProperties(properties)], required))

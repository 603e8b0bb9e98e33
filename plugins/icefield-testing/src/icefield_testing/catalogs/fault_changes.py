"""The changes of a catalog that the kit tries with faults: each can be prepared, made, looked for and undone."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from icefield.abc import CatalogAbility, CatalogBackend, Conflict, MultiTableCatalog

from icefield_testing.catalogs.attempts import Attempt
from icefield_testing.catalogs.view_changes import ChangeView, CreateView, DropView, RenameView


class _CreateNamespace(Attempt):
    def prepare(self) -> None:
        pass

    def act(self) -> None:
        self.through.create_namespace(self.space, {"by": "me", "x": "1"})

    def is_done(self) -> bool | None:
        if self.space not in self.checks.namespaces(self.backend):
            return False
        return True if self.checks.properties(self.backend, self.space) == {"by": "me", "x": "1"} else None

    def undo(self) -> None:
        self.backend.drop_namespace(self.space)


class _Update(Attempt):
    def prepare(self) -> None:
        self.backend.create_namespace(self.space, {"old": "1", "x": "1"})

    def act(self) -> None:
        self.through.update_namespace_properties(self.space, {"by": "me", "x": "2"}, frozenset({"old"}))

    def is_done(self) -> bool | None:
        found = self.checks.properties(self.backend, self.space)
        return True if found == {"by": "me", "x": "2"} else False if found == {"old": "1", "x": "1"} else None

    def undo(self) -> None:
        self.backend.update_namespace_properties(self.space, {"old": "1", "x": "1"}, frozenset({"by"}))


class _DropNamespace(Attempt):
    def prepare(self) -> None:
        self.backend.create_namespace(self.space, {"x": "1"})

    def act(self) -> None:
        self.through.drop_namespace(self.space)

    def is_done(self) -> bool | None:
        if self.space not in self.checks.namespaces(self.backend):
            return True
        return False if self.checks.properties(self.backend, self.space) == {"x": "1"} else None

    def undo(self) -> None:
        self.prepare()


class _CreateTable(Attempt):
    commits = True

    def open(self, through: CatalogBackend) -> None:
        super().open(through)
        self.choose_name()
        self.proposal = self.checks._table_creation(self.backend, self.name)
        self.strategy = through.strategy(self.name, self.proposal.metadata.location)

    def act(self) -> None:
        if isinstance(self.strategy.commit(None, self.proposal), Conflict):
            raise AssertionError("the creation says that another came first, and nobody else was there")

    def is_done(self) -> bool | None:
        return self.names_are(set(), {self.name})

    def undo(self) -> None:
        self.backend.strategy(self.name).drop()


class _OfATable(Attempt):
    def prepare(self) -> None:
        super().prepare()
        self.checks.create_table(self.backend, self.name)


class _Rename(_OfATable):
    @classmethod
    def is_for(cls, backend: CatalogBackend) -> bool:
        return CatalogAbility.RENAME in backend.abilities

    def act(self) -> None:
        self.through.rename_table(self.name, self.other)

    def is_done(self) -> bool | None:
        return self.names_are({self.name}, {self.other})

    def undo(self) -> None:
        self.backend.rename_table(self.other, self.name)


class _Register(_OfATable):
    @classmethod
    def is_for(cls, backend: CatalogBackend) -> bool:
        return CatalogAbility.REGISTRATION in backend.abilities

    def prepare(self) -> None:
        super().prepare()
        self.location = self.checks._loaded(self.backend, self.name)[0].location

    def act(self) -> None:
        self.through.register_table(self.other, self.location)

    def is_done(self) -> bool | None:
        return self.names_are({self.name}, {self.name, self.other})

    def undo(self) -> None:
        self.backend.strategy(self.other).drop()


class _DropTable(_OfATable):
    commits = True

    def open(self, through: CatalogBackend) -> None:
        super().open(through)
        self.strategy = through.strategy(self.name)

    def act(self) -> None:
        self.strategy.drop()

    def is_done(self) -> bool | None:
        return self.names_are({self.name}, set())

    def undo(self) -> None:
        self.choose_name()
        self.checks.create_table(self.backend, self.name)


class _ChangeTables(_OfATable):
    commits = True

    @classmethod
    def is_for(cls, backend: CatalogBackend) -> bool:
        return isinstance(backend, MultiTableCatalog)

    def prepare(self) -> None:
        super().prepare()
        self.checks.create_table(self.backend, self.other)

    def open(self, through: CatalogBackend) -> None:
        super().open(through)
        self.mark = uuid4().hex
        names = (self.name, self.other)
        self.changes = [self.checks._table_change(self.backend, each, {"by": self.mark}) for each in names]

    def act(self) -> None:
        assert isinstance(self.through, MultiTableCatalog)
        if isinstance(self.through.commit_tables(self.changes), Conflict):
            raise AssertionError("the change of several tables says that another came first, and nobody else was there")

    def is_done(self) -> bool | None:
        names = (self.name, self.other)
        made = [self.checks._metadata_of(self.backend, each).properties.get("by") == self.mark for each in names]
        return None if any(made) and not all(made) else all(made)

    def undo(self) -> None:
        """The next writer changes one of the tables."""
        change = self.checks._table_change(self.backend, self.name, {"by": "the next writer"})
        assert not isinstance(self.backend.strategy(self.name).commit(change.base, change.proposal), Conflict)


CHANGES: Final[dict[str, type[Attempt]]] = {
    "create": _CreateNamespace,
    "update": _Update,
    "drop": _DropNamespace,
    "create table": _CreateTable,
    "rename": _Rename,
    "register": _Register,
    "drop table": _DropTable,
    "change tables": _ChangeTables,
    "create view": CreateView,
    "change view": ChangeView,
    "rename view": RenameView,
    "drop view": DropView,
}

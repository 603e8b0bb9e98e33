"""Pairs of changes that are made at the same time: they exclude each other, or both must be visible afterwards."""

from __future__ import annotations

from typing import Final

from icefield.abc import CatalogAbility, CatalogBackend, TableName
from icefield.commit import change_of
from icefield.metadata import SetProperties

from icefield_testing.catalogs.pair import Pair, Said, dotted, raise_conflict


class _TwoUpdates(Pair):
    needs_conditions = True

    def first(self) -> None:
        self.through.update_namespace_properties(self.space, {"first": "1"}, frozenset({"old"}))

    def rival(self) -> None:
        self.backend.update_namespace_properties(self.space, {"rival": "1"}, frozenset())

    def judge(self, first: Said, rival: Said) -> None:
        found = self.checks.properties(self.backend, self.space)
        lost = [key for key, said in (("first", first), ("rival", rival)) if said is None and key not in found]
        assert not lost, f"{len(lost)} of 2 updates of properties are lost: {', '.join(lost)}"
        assert ("first" in found) == ("old" not in found), f"an update of properties is half done: {found}"


class _TableAndView(Pair):
    views = True

    def open(self, through: CatalogBackend) -> None:
        super().open(through)
        self.create = self.creation(through, self.free)
        self.create_view = self.creation_of_view(self.free)

    def first(self) -> None:
        self.create()

    def rival(self) -> None:
        self.create_view(self.backend)

    def judge(self, first: Said, rival: Said) -> None:
        table, view = self.tables(self.free), self.views_of(self.free)
        assert not (table and view), "a table and a view have one name: each looked for the other, and wrote"
        assert first or table, "a table is said to be created, and is not there"
        assert rival or view, "a view is said to be created, and is not there"


class _TableInDroppedNamespace(Pair):
    def open(self, through: CatalogBackend) -> None:
        super().open(through)
        self.create = self.creation(through, self.free)

    def first(self) -> None:
        self.create()

    def rival(self) -> None:
        self.backend.drop_namespace(self.space)

    def judge(self, first: Said, rival: Said) -> None:
        assert self.tables(self.free) or first, "a table is said to be created, and is not there"


class _DropOfFilledNamespace(Pair):
    """The drop of a namespace is under way while a rival creates a table in it."""

    needs_conditions = True

    def open(self, through: CatalogBackend) -> None:
        super().open(through)
        self.create = self.creation(self.backend, self.free)

    def first(self) -> None:
        self.through.drop_namespace(self.space)

    def rival(self) -> None:
        self.create()

    def judge(self, first: Said, rival: Said) -> None:
        assert self.tables(self.free) or rival, "a table is said to be created, and is not there"


class _ViewInDroppedNamespace(Pair):
    views = True

    def open(self, through: CatalogBackend) -> None:
        super().open(through)
        self.create_view = self.creation_of_view(self.free)

    def first(self) -> None:
        self.create_view(self.through)

    def rival(self) -> None:
        self.backend.drop_namespace(self.space)

    def judge(self, first: Said, rival: Said) -> None:
        assert self.views_of(self.free) or first, "a view is said to be created, and is not there"


class _NestedInDroppedNamespace(Pair):
    needs = frozenset({CatalogAbility.NESTED_NAMESPACES})

    def first(self) -> None:
        self.through.create_namespace((*self.space, "nested"), {})

    def rival(self) -> None:
        self.backend.drop_namespace(self.space)

    def judge(self, first: Said, rival: Said) -> None:
        if first is None:
            is_there = self.space in self.checks.namespaces(self.backend)
            assert is_there, "a namespace is said to be created, and the namespace above it is gone"
            below = self.backend.list_namespaces(self.space).items
            assert below == ((*self.space, "nested"),), f"a namespace is said to be created, and {below} are listed"


class _Renames(Pair):
    needs = frozenset({CatalogAbility.RENAME})
    tables_before = 1

    @property
    def target(self) -> TableName:
        """The name that the rival gives to a table."""
        return self.free

    def prepare(self) -> None:
        super().prepare()
        self.made = {name: self.new_table(name) for name in (self.one, self.two)[: self.tables_before]}

    def first(self) -> None:
        self.through.rename_table(self.one, self.free)

    def judge(self, first: Said, rival: Said) -> None:
        self.found = self.tables(*{self.free, self.target, *self.made})
        for name, (_, metadata) in self.made.items():
            names = [dotted(each) for each, uuid in self.found.items() if uuid == str(metadata.table_uuid)]
            assert names, f"{dotted(name)} is lost: it has no name after a rename"
            assert len(names) == 1, f"{dotted(name)} has {len(names)} names after a rename: {names}"


class _RenamesToOneName(_Renames):
    tables_before = 2

    def rival(self) -> None:
        self.backend.rename_table(self.two, self.free)

    def judge(self, first: Said, rival: Said) -> None:
        super().judge(first, rival)
        assert first or self.free in self.found, "a table is said to be renamed, and nothing has the new name"


class _RenamesOfOneTable(_Renames):
    @property
    def target(self) -> TableName:
        return self.another

    def rival(self) -> None:
        self.backend.rename_table(self.one, self.target)


class _RenameToNewTable(_Renames):
    def open(self, through: CatalogBackend) -> None:
        super().open(through)
        self.create = self.creation(self.backend, self.free)

    def rival(self) -> None:
        self.create()

    def judge(self, first: Said, rival: Said) -> None:
        super().judge(first, rival)
        renamed = self.found.get(self.free) == str(self.made[self.one][1].table_uuid)
        assert rival or not renamed, "a table is said to be created, and another was renamed over it"
        assert first or renamed, "a table is said to be renamed, and nothing has the new name"


class _RenameToNewView(_Renames):
    views = True

    def open(self, through: CatalogBackend) -> None:
        super().open(through)
        self.create_view = self.creation_of_view(self.free)

    def rival(self) -> None:
        self.create_view(self.backend)

    def judge(self, first: Said, rival: Said) -> None:
        super().judge(first, rival)
        both = self.free in self.found and self.views_of(self.free)
        assert not both, "a table was renamed to the name of a view, which was created meanwhile"


class _RenameAndCommit(_Renames):
    def open(self, through: CatalogBackend) -> None:
        super().open(through)
        made, metadata = self.made[self.one]
        self.base, self.proposal = made.pointer, change_of(metadata, [SetProperties({"rival": "1"})])
        self.strategy = self.backend.strategy(self.one)

    def rival(self) -> None:
        raise_conflict(self.strategy.commit(self.base, self.proposal))

    def judge(self, first: Said, rival: Said) -> None:
        super().judge(first, rival)
        (name,) = self.found
        changed = self.checks._metadata_of(self.backend, name).properties.get("rival") == "1"
        assert rival or changed, "a commit is said to be made, and is lost by a rename"


PAIRS: Final[dict[str, type[Pair]]] = {
    "two updates of properties": _TwoUpdates,
    "a table and a view of one name": _TableAndView,
    "a table in a namespace that is dropped": _TableInDroppedNamespace,
    "a drop of a namespace that is filled": _DropOfFilledNamespace,
    "a view in a namespace that is dropped": _ViewInDroppedNamespace,
    "a namespace below one that is dropped": _NestedInDroppedNamespace,
    "two renames to one name": _RenamesToOneName,
    "two renames of one table": _RenamesOfOneTable,
    "a rename to the name of a new table": _RenameToNewTable,
    "a rename to the name of a new view": _RenameToNewView,
    "a rename of a table that is changed": _RenameAndCommit,
}

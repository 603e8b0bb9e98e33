"""A catalog in the memory of one process: as small as a right backend can be."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from icefield import FileIO
from icefield.abc import (
    CatalogAbility,
    CatalogBackend,
    CommitStrategy,
    Committed,
    Conflict,
    CurrentView,
    MultiTableCatalog,
    NamespaceName,
    Page,
    Pointer,
    Proposal,
    TableChange,
    TableName,
    ViewCatalog,
    ViewProposal,
)
from icefield.errors import (
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    TableExists,
    ViewExists,
)
from icefield.toolkit import MetastoreStrategy
from icefield_sql.metastore_views import MetastoreViews


class Store:
    """The namespaces, tables and views of one warehouse."""

    def __init__(self) -> None:
        self.namespaces: dict[NamespaceName, dict[str, str]] = {}
        self.pointers: dict[TableName, str] = {}
        self.views: dict[TableName, str] = {}


STORES: defaultdict[str, Store] = defaultdict(Store)
LOCK = threading.RLock()


class DictionaryStrategy(MetastoreStrategy):
    """The pointer of one table."""

    @property
    def store(self) -> Store:
        return STORES[self.properties["warehouse"]]

    @property
    def pointers(self) -> dict[TableName, str]:
        return self.store.pointers

    def read_pointer(self) -> str | None:
        return self.pointers.get(self.table)

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        with LOCK:
            if self.pointers.get(self.table) != old:
                return False
            if old is None:
                self.check_free()
            self.pointers[self.table] = new
            return True

    def check_free(self) -> None:
        """Raise for a new table in a missing namespace, or with the name of a view."""
        if self.table[:-1] not in self.store.namespaces:
            raise NoSuchNamespace(f"no namespace {'.'.join(self.table[:-1])}", namespace=self.table[:-1])
        if self.table in self.store.views:
            raise TableExists(f"a view has the name {'.'.join(self.table)}", table=self.table)

    def drop(self) -> None:
        with LOCK:
            if self.pointers.pop(self.table, None) is None:
                raise NoSuchTable(f"no table {'.'.join(self.table)}", table=self.table)


class DictionaryViews(MetastoreViews):
    """The pointers of the views of one warehouse."""

    def __init__(self, io: FileIO, store: Store) -> None:
        super().__init__(io)
        self.store = store

    def read_pointer(self, view: TableName) -> str | None:
        return self.store.views.get(view)

    def swap_pointer(self, view: TableName, old: str | None, new: str) -> bool:
        with LOCK:
            if self.store.views.get(view) != old:
                return False
            if old is None and view[:-1] not in self.store.namespaces:
                raise NoSuchNamespace(f"no namespace {'.'.join(view[:-1])}", namespace=view[:-1])
            if view in self.store.pointers:
                raise TableExists(f"a table has the name {'.'.join(view)}", table=view)
            self.store.views[view] = new
            return True


class DictionaryBackend(CatalogBackend):
    """Names in dictionaries."""

    abilities = frozenset(CatalogAbility)
    strategy_class: type[DictionaryStrategy] = DictionaryStrategy

    @property
    def store(self) -> Store:
        return STORES[self.properties["warehouse"]]

    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        with LOCK:
            if namespace in self.store.namespaces:
                raise NamespaceExists(f"namespace {'.'.join(namespace)} exists", namespace=namespace)
            if namespace[:-1]:
                self.check(namespace[:-1])
            self.store.namespaces[namespace] = dict(properties)

    def drop_namespace(self, namespace: NamespaceName) -> None:
        with LOCK:
            self.check(namespace)
            if any(
                name[:-1] == namespace for name in (*self.store.pointers, *self.store.views, *self.store.namespaces)
            ):
                raise NamespaceNotEmpty(f"namespace {'.'.join(namespace)} is not empty", namespace=namespace)
            del self.store.namespaces[namespace]

    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        if parent:
            self.check(parent)
        return self.page((name for name in [*self.store.namespaces] if name[:-1] == parent), token, size)

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        self.check(namespace)
        return dict(self.store.namespaces[namespace])

    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        with LOCK:
            before = self.namespace_properties(namespace)
            kept = {key: value for key, value in before.items() if key not in removals}
            self.store.namespaces[namespace] = {**kept, **updates}

    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        self.check(namespace)
        return self.page((name for name in [*self.store.pointers] if name[:-1] == namespace), token, size)

    def table_location(self, table: TableName) -> str:
        self.check(table[:-1])
        return "/".join((self.properties["warehouse"], *table))

    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        place = location or self.properties["warehouse"]
        return self.strategy_class(table, place, self.io.storage(place), self.properties)

    def register_table(self, table: TableName, metadata_location: str) -> None:
        with LOCK:
            self.check(table[:-1])
            if table in self.store.pointers or table in self.store.views:
                raise TableExists(f"table {'.'.join(table)} exists", table=table)
            self.store.pointers[table] = metadata_location

    def rename_table(self, source: TableName, target: TableName) -> None:
        with LOCK:
            self.check(target[:-1])
            if source not in self.store.pointers:
                raise NoSuchTable(f"no table {'.'.join(source)}", table=source)
            if target in self.store.pointers or target in self.store.views:
                raise TableExists(f"table {'.'.join(target)} exists", table=target)
            self.store.pointers[target] = self.store.pointers.pop(source)

    def check(self, namespace: NamespaceName) -> None:
        """Raise ``NoSuchNamespace`` where there is none."""
        if namespace not in self.store.namespaces:
            raise NoSuchNamespace(f"no namespace {'.'.join(namespace)}", namespace=namespace)

    def page(self, names: Iterable[tuple[str, ...]], token: str | None, size: int | None) -> Page[tuple[str, ...]]:
        """The names after ``token``, which is the last name of the page before."""
        left = sorted(name for name in names if token is None or name[-1] > token)
        if size is None or len(left) <= size:
            return Page(tuple(left))
        return Page(tuple(left[:size]), left[size - 1][-1])


class WholeDictionaryBackend(DictionaryBackend, ViewCatalog, MultiTableCatalog):
    """With views, and changes of several tables."""

    def commit_tables(self, changes: Sequence[TableChange]) -> tuple[Committed, ...] | Conflict:
        staged = [self.staged(change) for change in changes]
        with LOCK:
            pointers = self.store.pointers
            if any(pointers.get(each.table) != (each.base.location if each.base else None) for each in changes):
                self.io.delete_many([each.location for each in staged])
                return Conflict()
            pointers.update({each.table: made.location for each, made in zip(changes, staged, strict=True)})
        for each in changes:
            self.made(each)
        return tuple(map(Committed, staged))

    def staged(self, change: TableChange) -> Pointer:
        """The metadata file of a change, to which nothing points yet."""
        return self._changing(change).stage(change.base, change.proposal)

    def made(self, change: TableChange) -> None:
        """Clean up after a change."""
        self._changing(change).delete_old(change.base, change.proposal)

    def _changing(self, change: TableChange) -> MetastoreStrategy:
        place = change.proposal.metadata.location
        return self.strategy_class(change.table, place, self.io.storage(place), self.properties)

    @property
    def views(self) -> DictionaryViews:
        return DictionaryViews(self.io, self.store)

    def list_views(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        self.check(namespace)
        return self.page((name for name in [*self.store.views] if name[:-1] == namespace), token, size)

    def load_view(self, view: TableName) -> CurrentView | None:
        return self.views.load(view)

    def commit_view(self, view: TableName, base: CurrentView | None, proposal: ViewProposal) -> CurrentView | None:
        self.check(view[:-1])
        return self.views.commit(view, base, proposal)

    def drop_view(self, view: TableName) -> None:
        with LOCK:
            if self.store.views.pop(view, None) is None:
                raise NoSuchView(f"no view {'.'.join(view)}", view=view)

    def rename_view(self, source: TableName, target: TableName) -> None:
        with LOCK:
            self.check(target[:-1])
            if source not in self.store.views:
                raise NoSuchView(f"no view {'.'.join(source)}", view=source)
            if target in self.store.pointers or target in self.store.views:
                raise ViewExists(f"view {'.'.join(target)} exists", view=target)
            self.store.views[target] = self.store.views.pop(source)

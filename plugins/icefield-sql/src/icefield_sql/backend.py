"""The catalog ``sql``: namespaces and tables as rows of SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

from icefield.abc import (
    CatalogAbility,
    CommitStrategy,
    Committed,
    Conflict,
    CurrentView,
    MultiTableCatalog,
    NamespaceName,
    Page,
    TableChange,
    TableName,
    ViewCatalog,
    ViewProposal,
)
from icefield.errors import (
    InvalidArgument,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    StorageError,
    TableExists,
)
from icefield.toolkit import MAX_NAME_LENGTH, MAX_NAMESPACE_VALUE_LENGTH, checked_names, checked_properties
from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    delete,
    exists,
    func,
    insert,
    literal,
    not_,
    null,
    select,
    union,
    union_all,
    update,
)

from icefield_sql.database import Database, DatabaseConnectionLost, NameTaken
from icefield_sql.several import commit_together
from icefield_sql.strategy import SqlStrategy, is_view, named, new_row, no_table, row_of, taken_by_view
from icefield_sql.tables import NAMESPACES, TABLES, beginning
from icefield_sql.views import SqlViews

if TYPE_CHECKING:
    from icefield import FileIO

# The row of a namespace without properties, as in Java and PyIceberg.
_MARKER = ("exists", "true")

_TRIES = 20
_ROWS_AT_ONCE = 100  # few, as each name may have the maximum length


class SqlBackend(ViewCatalog, MultiTableCatalog):
    """Rows keyed by the catalog's name, so that several catalogs share a database."""

    abilities = frozenset(CatalogAbility)

    def __init__(self, name: str, properties: Mapping[str, str], io: FileIO) -> None:
        super().__init__(name, properties, io)
        if "commit" in self.properties:
            raise InvalidArgument(f"catalog '{name}' of type 'sql' commits by itself: remove the property 'commit'")
        self._database = Database(name, self.properties)
        self._views = SqlViews(self._database, io)

    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        string = _joined(namespace)
        taken = NamespaceExists(f"namespace {string} exists already", namespace=namespace)
        try:
            with self._connection() as connection:
                if self._exists(connection, string):
                    raise taken
                connection.execute(insert(NAMESPACES), self._rows(string, {**dict([_MARKER]), **properties}))
        except NameTaken as error:
            raise taken from error

    def drop_namespace(self, namespace: NamespaceName) -> None:
        string = _joined(namespace)
        with self._connection() as connection:
            self._require(connection, namespace)
            # Views count as contents, since dropping the namespace would hide them.
            if connection.execute(select(literal(1)).where(self._below(string) | self._holds(string))).first():
                raise NamespaceNotEmpty(f"namespace {string} is not empty", namespace=namespace)
            connection.execute(delete(NAMESPACES).where(self._is(string)))

    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        with self._connection() as connection:
            levels = [tuple(name.split(".")) for name in self._all_namespaces(connection)]
        depth = len(parent)
        if parent and not any(name[:depth] == parent for name in levels):
            raise self._missing(parent)
        found = {name[: depth + 1] for name in levels if len(name) > depth and name[:depth] == parent}
        return _page(sorted(found), token, size)

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        string = _joined(namespace)
        columns = (
            beginning(NAMESPACES.c.property_key, MAX_NAME_LENGTH),
            beginning(NAMESPACES.c.property_value, MAX_NAMESPACE_VALUE_LENGTH),
        )
        own = select(*columns).where(self._is(string))
        # A namespace without rows of its own exists if it holds a table or a namespace: the query yields a null row.
        implied = select(null(), null()).where(self._below(string) | self._holds(string))
        with self._connection() as connection:
            rows: Sequence[Any] = connection.execute(union_all(own, implied)).all()
        if not rows:
            raise self._missing(namespace)
        given = {key: value for key, value in rows if key is not None and (key, value) != _MARKER}
        return checked_properties(namespace, given)

    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        for _ in range(_TRIES):
            try:
                self._update(namespace, updates, removals)
                return
            except NameTaken:  # another update of the namespace inserted the same rows, and has ended
                continue
        raise StorageError(
            f"namespace {'.'.join(namespace)} of catalog '{self.name}' is changed by others all the time",
            retryable=True,
        )

    def _update(self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]) -> None:
        string = _joined(namespace)
        with self._connection() as connection:
            self._require(connection, namespace)
            gone = removals | set(updates) | {_MARKER[0]}
            connection.execute(delete(NAMESPACES).where(self._is(string), NAMESPACES.c.property_key.in_(gone)))
            connection.execute(insert(NAMESPACES), self._rows(string, {**dict([_MARKER]), **updates}))

    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        return self._listed("tables", namespace, token, size)

    def list_views(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        return self._listed("views", namespace, token, size)

    def _listed(self, what: str, namespace: NamespaceName, token: str | None, size: int | None) -> Page[TableName]:
        with self._connection() as connection:
            table = self._database.is_table
            condition = self._in(_joined(namespace)) & (table if what == "tables" else not_(table))
            rows = _streamed(connection, select(beginning(TABLES.c.table_name, MAX_NAME_LENGTH)).where(condition))
            names = checked_names(f"the {what} of {'.'.join(namespace)} in catalog '{self.name}'", rows)
            if not names:
                self._require(connection, namespace)
        return _page([(*namespace, name) for name in sorted(names)], token, size)

    def table_location(self, table: TableName) -> str:
        properties = self.namespace_properties(table[:-1])
        if location := properties.get("location"):
            return f"{location.rstrip('/')}/{table[-1]}"
        warehouse = self.properties.get("warehouse")
        if not warehouse:
            raise InvalidArgument(
                f"catalog '{self.name}' has no property 'warehouse': set it, or give the table a location"
            )
        return "/".join((warehouse.rstrip("/"), *table))

    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        # No location is needed for an existing table: its pointer states the location, and the code that loads the
        # table reads the pointer.
        return self._strategy(table, location)

    def commit_tables(self, changes: Sequence[TableChange]) -> tuple[Committed, ...] | Conflict:
        return commit_together(self._database, changes, self._strategy)

    def _strategy(self, table: TableName, location: str | None) -> SqlStrategy:
        _joined(table)
        return SqlStrategy(table, location or "", self.io.storage(location), self.properties, self._database)

    def register_table(self, table: TableName, metadata_location: str) -> None:
        try:
            with self._connection() as connection:
                self._require(connection, table[:-1])
                connection.execute(insert(TABLES).values(new_row(self._database, table, metadata_location)))
        except NameTaken as error:
            raise self._taken(table) from error

    def rename_table(self, source: TableName, target: TableName) -> None:
        values = {"table_namespace": _joined(target[:-1]), "table_name": _joined(target[-1:])}
        try:
            with self._connection() as connection:
                statement = update(TABLES).where(row_of(self._database, source)).values(values)
                self._require(connection, target[:-1])
                renamed = connection.execute(statement).rowcount
        except NameTaken as error:
            raise self._taken(target) from error
        if renamed != 1:
            raise no_table(self._database, source)

    def load_view(self, view: TableName) -> CurrentView | None:
        _joined(view)
        return self._views.load(view)

    def commit_view(self, view: TableName, base: CurrentView | None, proposal: ViewProposal) -> CurrentView | None:
        _joined(view)
        if base is None:  # before a file is written; the insert decides
            with self._connection() as connection:
                self._views.require_types()
                self._require(connection, view[:-1])
                taken = connection.execute(select(literal(1)).where(named(self._database, view))).first()
            if taken is not None:
                raise self._views.taken(view)
        return self._views.commit(view, base, proposal)

    def drop_view(self, view: TableName) -> None:
        self._views.drop(view)

    def rename_view(self, source: TableName, target: TableName) -> None:
        _joined(target)
        try:
            with self._connection() as connection:
                self._require(connection, target[:-1])
                renamed = self._views.rename(connection, source, target)
        except NameTaken as error:
            raise self._views.taken(target) from error
        if not renamed:
            raise self._views.missing(source)

    def _taken(self, table: TableName) -> TableExists:
        if is_view(self._database, table):
            return taken_by_view(self._database, table)
        return TableExists(f"table {'.'.join(table)} exists already in catalog '{self.name}'", table=table)

    def credentials(self) -> str | None:
        return self._database.user

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        try:
            with self._database.transaction() as connection:
                yield connection
        except DatabaseConnectionLost as error:
            raise StorageError(f"catalog '{self.name}' lost its database: {error}", retryable=True) from error

    def _require(self, connection: Connection, namespace: NamespaceName) -> None:
        if not self._exists(connection, _joined(namespace)):
            raise self._missing(namespace)

    def _missing(self, namespace: NamespaceName) -> NoSuchNamespace:
        return NoSuchNamespace(
            f"no namespace {'.'.join(namespace)} in catalog '{self.name}'; create_namespace makes it",
            namespace=namespace,
        )

    def _exists(self, connection: Connection, string: str) -> bool:
        """Whether a namespace has a row of its own, a table, or a namespace below it."""
        own = exists(NAMESPACES.c.namespace).where(self._is(string))
        return (
            connection.execute(select(literal(1)).where(own | self._below(string) | self._holds(string))).first()
            is not None
        )

    def _holds(self, namespace: str) -> ColumnElement[bool]:
        """The condition that a namespace holds a table or a view."""
        return exists(TABLES.c.table_name).where(self._in(namespace))

    def _below(self, namespace: str) -> ColumnElement[bool]:
        """The condition that a namespace has a namespace below it, by a row or by a table."""
        own, of_tables = NAMESPACES.c.namespace, TABLES.c.table_namespace
        return exists(own).where(NAMESPACES.c.catalog_name == self.name, _starts_with(own, f"{namespace}.")) | exists(
            of_tables
        ).where(TABLES.c.catalog_name == self.name, _starts_with(of_tables, f"{namespace}."))

    def _all_namespaces(self, connection: Connection) -> list[str]:
        own_name = beginning(NAMESPACES.c.namespace, MAX_NAME_LENGTH)
        own = select(own_name).where(NAMESPACES.c.catalog_name == self.name)
        of_table = beginning(TABLES.c.table_namespace, MAX_NAME_LENGTH)
        of_tables = select(of_table).where(TABLES.c.catalog_name == self.name)
        names = (name for name in _streamed(connection, union(own, of_tables)) if name)
        return checked_names(f"the namespaces of catalog '{self.name}'", names)

    def _rows(self, namespace: str, properties: Mapping[str, str]) -> list[dict[str, str]]:
        return [
            {"catalog_name": self.name, "namespace": namespace, "property_key": key, "property_value": value}
            for key, value in properties.items()
        ]

    def _is(self, namespace: str) -> ColumnElement[bool]:
        return (NAMESPACES.c.catalog_name == self.name) & (NAMESPACES.c.namespace == namespace)

    def _in(self, namespace: str) -> ColumnElement[bool]:
        return (TABLES.c.catalog_name == self.name) & (TABLES.c.table_namespace == namespace)


def _streamed(connection: Connection, statement: Executable) -> Iterator[str]:
    """The values of a statement's only column, in parts, as there may be any number of rows."""
    result = connection.execute(statement, execution_options={"stream_results": True, "yield_per": _ROWS_AT_ONCE})
    return chain.from_iterable(result.scalars().partitions())


def _starts_with(column: ColumnElement[str], start: str) -> ColumnElement[bool]:
    # Neither LIKE nor a range serves: LIKE ignores case in SQLite, and a range depends on the database's collation.
    return func.substr(column, 1, len(start)) == start


def _joined(name: tuple[str, ...]) -> str:
    """A name as the tables hold it. A level with a dot would read back as two levels, so it is refused."""
    for level in name:
        if "." in level:
            raise InvalidArgument(f"'{level}' cannot be a name here: the catalog's tables separate levels by dots")
    return ".".join(name)


def _page(names: list[tuple[str, ...]], token: str | None, size: int | None) -> Page[tuple[str, ...]]:
    """The names after ``token``, which is the last name of the page before."""
    rest = [name for name in names if token is None or name[-1] > token]
    if size is None or len(rest) <= size:
        return Page(tuple(rest))
    return Page(tuple(rest[:size]), rest[size - 1][-1])

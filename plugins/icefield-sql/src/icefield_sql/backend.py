"""The catalog ``sql``: namespaces and tables as rows of SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

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

from icefield_sql.database import Database
from icefield_sql.engines import DatabaseConnectionLost, NameTaken, SqlConnection
from icefield_sql.several import commit_together
from icefield_sql.strategy import SqlStrategy, insert_row, is_view, named, no_table, rename_row, taken_by_view
from icefield_sql.tables import NAMED, beginning
from icefield_sql.views import SqlViews

if TYPE_CHECKING:
    from icefield import FileIO

T = TypeVar("T")

# The row of a namespace without properties, as in Java and PyIceberg.
_MARKER = ("exists", "true")

_TRIES = 20
_ROWS_AT_ONCE = 100  # of an INSERT or a DELETE

_IS: Final = "catalog_name = :catalog AND namespace = :namespace"
_HELD: Final = "catalog_name = :catalog AND table_namespace = :namespace"
# Neither LIKE nor a range serves: LIKE ignores case in SQLite, and a range depends on the database's collation.
_BELOW: Final = "catalog_name = :catalog AND substr({}, 1, :length) = :start"
_HAS_ROWS: Final = f"EXISTS (SELECT 1 FROM iceberg_namespace_properties WHERE {_IS})"
_IS_IN_USE: Final = (
    f"(EXISTS (SELECT 1 FROM iceberg_tables WHERE {_HELD}) "
    f"OR EXISTS (SELECT 1 FROM iceberg_namespace_properties WHERE {_BELOW.format('namespace')}) "
    f"OR EXISTS (SELECT 1 FROM iceberg_tables WHERE {_BELOW.format('table_namespace')}))"
)
"""The condition that a namespace holds a table, a view or a namespace."""


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
                self._insert(connection, string, {**dict([_MARKER]), **properties})
        except NameTaken as error:
            raise taken from error

    def drop_namespace(self, namespace: NamespaceName) -> None:
        string = _joined(namespace)
        with self._connection() as connection:
            self._require(connection, namespace)
            # Views count as contents, since dropping the namespace would hide them.
            if connection.execute(f"SELECT 1 WHERE {_IS_IN_USE}", self._of(string)).fetchone():
                raise NamespaceNotEmpty(f"namespace {string} is not empty", namespace=namespace)
            connection.execute(f"DELETE FROM iceberg_namespace_properties WHERE {_IS}", self._is(string))

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
        _key = beginning("property_key", MAX_NAME_LENGTH)
        _value = beginning("property_value", MAX_NAMESPACE_VALUE_LENGTH)
        # A namespace without rows of its own exists if it holds a table or a namespace: the query yields a null row.
        statement = (
            f"SELECT {_key}, {_value} FROM iceberg_namespace_properties WHERE {_IS} "
            f"UNION ALL SELECT NULL, NULL WHERE {_IS_IN_USE}"
        )
        with self._connection() as connection:
            rows = [*connection.execute(statement, self._of(string))]
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
            for keys in _parts(removals | set(updates) | {_MARKER[0]}):
                values = {f"key_{number}": key for number, key in enumerate(keys)}
                _keys = ", ".join(f":{name}" for name in values)
                statement = f"DELETE FROM iceberg_namespace_properties WHERE {_IS} AND property_key IN ({_keys})"
                connection.execute(statement, {**self._is(string), **values})
            self._insert(connection, string, {**dict([_MARKER]), **updates})

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
            name, negated = beginning("table_name", MAX_NAME_LENGTH), "" if what == "tables" else "NOT"
            statement = f"SELECT {name} FROM iceberg_tables WHERE {_HELD} AND {negated} {self._database.is_table}"
            rows = connection.stream(statement, self._is(_joined(namespace)))
            names = checked_names(
                f"the {what} of {'.'.join(namespace)} in catalog '{self.name}'", (row[0] for row in rows)
            )
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
                insert_row(connection, self._database, table, metadata_location)
        except NameTaken as error:
            raise self._taken(table) from error

    def rename_table(self, source: TableName, target: TableName) -> None:
        _joined(target)
        try:
            with self._connection() as connection:
                self._require(connection, target[:-1])
                renamed = rename_row(connection, self._database, source, target, self._database.is_table)
        except NameTaken as error:
            raise self._taken(target) from error
        if not renamed:
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
                statement = f"SELECT 1 FROM iceberg_tables WHERE {NAMED}"
                taken = connection.execute(statement, named(self._database, view)).fetchone()
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
    def _connection(self) -> Iterator[SqlConnection]:
        try:
            with self._database.transaction() as connection:
                yield connection
        except DatabaseConnectionLost as error:
            raise StorageError(f"catalog '{self.name}' lost its database: {error}", retryable=True) from error

    def _require(self, connection: SqlConnection, namespace: NamespaceName) -> None:
        if not self._exists(connection, _joined(namespace)):
            raise self._missing(namespace)

    def _missing(self, namespace: NamespaceName) -> NoSuchNamespace:
        return NoSuchNamespace(
            f"no namespace {'.'.join(namespace)} in catalog '{self.name}'; create_namespace makes it",
            namespace=namespace,
        )

    def _exists(self, connection: SqlConnection, string: str) -> bool:
        """Whether a namespace has a row of its own, a table, or a namespace below it."""
        statement = f"SELECT 1 WHERE {_HAS_ROWS} OR {_IS_IN_USE}"
        return connection.execute(statement, self._of(string)).fetchone() is not None

    def _all_namespaces(self, connection: SqlConnection) -> list[str]:
        _own, _of_table = beginning("namespace", MAX_NAME_LENGTH), beginning("table_namespace", MAX_NAME_LENGTH)
        statement = (
            f"SELECT {_own} FROM iceberg_namespace_properties WHERE catalog_name = :catalog "
            f"UNION SELECT {_of_table} FROM iceberg_tables WHERE catalog_name = :catalog"
        )
        names = (name for (name,) in connection.stream(statement, {"catalog": self.name}) if name)
        return checked_names(f"the namespaces of catalog '{self.name}'", names)

    def _insert(self, connection: SqlConnection, namespace: str, properties: Mapping[str, str]) -> None:
        """Insert rows of a namespace. Raises ``NameTaken``."""
        for part in _parts(properties.items()):
            values = self._is(namespace)
            for number, (key, value) in enumerate(part):
                values |= {f"key_{number}": key, f"value_{number}": value}
            _rows = ", ".join(f"(:catalog, :namespace, :key_{number}, :value_{number})" for number in range(len(part)))
            _columns = "catalog_name, namespace, property_key, property_value"
            connection.execute(f"INSERT INTO iceberg_namespace_properties ({_columns}) VALUES {_rows}", values)

    def _is(self, namespace: str) -> dict[str, Any]:
        """The values of ``_IS`` and ``_HELD``."""
        return {"catalog": self.name, "namespace": namespace}

    def _of(self, namespace: str) -> dict[str, Any]:
        """The values of ``_IS_IN_USE`` too."""
        return {**self._is(namespace), "start": f"{namespace}.", "length": len(namespace) + 1}


def _parts(values: Iterable[T]) -> Iterator[list[T]]:
    """The values in lists of bounded length, as databases bound the number of values of a statement."""
    held = [*values]
    return (held[start : start + _ROWS_AT_ONCE] for start in range(0, len(held), _ROWS_AT_ONCE))


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

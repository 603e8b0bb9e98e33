"""The commit of a table in the database: one UPDATE that names the old pointer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from icefield.abc import FileSystem, Proposal, TableName
from icefield.errors import CommitStateUnknown, NoSuchTable, StorageError, TableExists
from icefield.toolkit import MAX_LOCATION_LENGTH, MetastoreStrategy, OutcomeUnknown, checked_pointer, folder_end
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    String,
    Update,
    and_,
    bindparam,
    delete,
    insert,
    not_,
    select,
    update,
)

from icefield_sql.database import Database, DatabaseConnectionLost, NameTaken
from icefield_sql.tables import TABLE, TABLES, beginning, is_table

_NAMED: Final = and_(
    TABLES.c.catalog_name == bindparam("of_catalog"),
    TABLES.c.table_namespace == bindparam("of_namespace"),
    TABLES.c.table_name == bindparam("of_name"),
)


class SqlStrategy(MetastoreStrategy):
    """Check-and-put of ``metadata_location`` in the table's row."""

    def __init__(
        self,
        table: TableName,
        location: str,
        file_system: FileSystem,
        properties: Mapping[str, str],
        database: Database,
    ) -> None:
        super().__init__(table, location, file_system, properties)
        self._database = database

    def read_pointer(self) -> str | None:
        return pointer_of(self._database, self.table)

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        try:
            return self._create(new) if old is None else self._update(old, new)
        except NameTaken as error:
            if is_view(self._database, self.table):
                raise taken_by_view(self._database, self.table) from error
            return False
        except DatabaseConnectionLost as error:
            raise OutcomeUnknown(str(error)) from error

    def tables_in(self, folder: str) -> list[tuple[str, str]]:
        columns = TABLES.c.table_namespace, TABLES.c.table_name, TABLES.c.metadata_location
        others = and_(
            TABLES.c.catalog_name == self._database.catalog,
            TABLES.c.metadata_location.contains(folder_end(folder), autoescape=True),
            not_(named(self._database, self.table)),
        )
        with looking(self._database) as connection:
            found = connection.execute(select(*columns).where(others))
            return [(f"{namespace}.{name}", location) for namespace, name, location in found if location]

    def drop(self) -> None:
        try:
            with self._database.transaction() as connection:
                dropped = connection.execute(delete(TABLES).where(row_of(self._database, self.table))).rowcount
        except DatabaseConnectionLost as error:
            raise CommitStateUnknown(
                f"the reply to dropping {'.'.join(self.table)} was lost: {error}; look whether the table is there",
                table=self.table,
            ) from error
        if not dropped:
            raise no_table(self._database, self.table)

    def _create(self, location: str) -> bool:
        with self._database.transaction() as connection:
            return self.swap_in(connection, None, location)

    def _update(self, old: str, new: str) -> bool:
        with self._database.transaction() as connection:
            return self.swap_in(connection, old, new)

    def swap_in(self, connection: Connection, old: str | None, new: str) -> bool:
        """Swap the pointer as part of a transaction. Raises ``NameTaken`` for a new table with a taken name."""
        if old is None:
            connection.execute(insert(TABLES).values(new_row(self._database, self.table, new)))
            return True
        statement = _swap(typed=self._database.has_type_column)
        values = {**_parameters(self._database, self.table), "old": old, "new": new}
        return connection.execute(statement, values).rowcount == 1


def row_of(database: Database, table: TableName) -> ColumnElement[bool]:
    """The condition for the row of a table, and never of a view. Call it in a transaction."""
    return named(database, table) & database.is_table


def named(database: Database, name: TableName) -> ColumnElement[bool]:
    """The condition for the row of a table or a view."""
    return and_(
        TABLES.c.catalog_name == database.catalog,
        TABLES.c.table_namespace == ".".join(name[:-1]),
        TABLES.c.table_name == name[-1],
    )


def is_view(database: Database, name: TableName) -> bool:
    """Whether a name belongs to a view; tables and views share their names."""
    with looking(database) as connection:
        rows = select(TABLES.c.table_name).where(named(database, name), not_(database.is_table))
        return connection.execute(rows).first() is not None


def no_table(database: Database, table: TableName) -> NoSuchTable:
    """The error for a missing table. It mentions a view of the same name."""
    view = "; a view has that name: see load_view and drop_view" if is_view(database, table) else ""
    return NoSuchTable(f"no table {'.'.join(table)} in catalog '{database.catalog}'{view}", table=table)


def taken_by_view(database: Database, table: TableName) -> TableExists:
    """The error for a new table with the name of a view."""
    return TableExists(
        f"a view with the name {'.'.join(table)} exists already in catalog '{database.catalog}'; tables and views "
        "share their names",
        table=table,
        view=table,
    )


def new_row(database: Database, table: TableName, location: str, kind: str = TABLE) -> dict[str, Any]:
    """The row of a new table or view."""
    row = {
        "catalog_name": database.catalog,
        "table_namespace": ".".join(table[:-1]),
        "table_name": table[-1],
        "metadata_location": location,
        "previous_metadata_location": None,
    }
    return {**row, "iceberg_type": kind} if database.has_type_column else row


def pointer_of(database: Database, table: TableName) -> str | None:
    """The metadata location of a table, or None."""
    with looking(database) as connection:
        statement = _pointer(typed=database.has_type_column)
        found: str | None = connection.execute(statement, _parameters(database, table)).scalar()
    return checked_pointer(table, found)


# The two statements of each commit are built once: SQLite runs a statement faster than SQLAlchemy builds it.
@cache
def _pointer(*, typed: bool) -> Select[str]:
    return select(beginning(TABLES.c.metadata_location, MAX_LOCATION_LENGTH)).where(_NAMED, is_table(typed=typed))


@cache
def _swap(*, typed: bool) -> Update:
    old = bindparam("old", type_=String)
    return (
        update(TABLES)
        .where(_NAMED, is_table(typed=typed), TABLES.c.metadata_location == old)
        .values(metadata_location=bindparam("new"), previous_metadata_location=old)
    )


def _parameters(database: Database, table: TableName) -> dict[str, str]:
    return {"of_catalog": database.catalog, "of_namespace": ".".join(table[:-1]), "of_name": table[-1]}


@contextmanager
def looking(database: Database) -> Iterator[Connection]:
    """A transaction that only reads, so that a lost connection may be retried."""
    try:
        with database.transaction() as connection:
            yield connection
    except DatabaseConnectionLost as error:
        raise StorageError(f"catalog '{database.catalog}' lost its database: {error}", retryable=True) from error

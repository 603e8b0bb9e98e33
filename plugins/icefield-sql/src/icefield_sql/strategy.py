"""The commit of a table in the database: one UPDATE that names the old pointer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from icefield.abc import FileSystem, Proposal, TableName
from icefield.errors import CommitStateUnknown, NoSuchTable, StorageError, TableExists
from icefield.toolkit import MAX_LOCATION_LENGTH, MetastoreStrategy, OutcomeUnknown, checked_pointer, folder_end

from icefield_sql.database import Database
from icefield_sql.engines import DatabaseConnectionLost, NameTaken, SqlConnection
from icefield_sql.tables import NAMED, TABLE, beginning


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
            with self._database.transaction() as connection:
                return self.swap_in(connection, old, new)
        except NameTaken as error:
            if is_view(self._database, self.table):
                raise taken_by_view(self._database, self.table) from error
            return False
        except DatabaseConnectionLost as error:
            raise OutcomeUnknown(str(error)) from error

    def tables_in(self, folder: str) -> list[tuple[str, str]]:
        end = re.sub("([%_!])", r"!\1", folder_end(folder))
        statement = (
            "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables "
            f"WHERE catalog_name = :catalog AND metadata_location LIKE :pattern ESCAPE '!' AND NOT ({NAMED})"
        )
        with looking(self._database) as connection:
            found = connection.execute(statement, {**named(self._database, self.table), "pattern": f"%{end}%"})
            return [(f"{namespace}.{name}", location) for namespace, name, location in found if location]

    def drop(self) -> None:
        try:
            with self._database.transaction() as connection:
                statement = f"DELETE FROM iceberg_tables WHERE {NAMED} AND {self._database.is_table}"
                dropped = connection.execute(statement, named(self._database, self.table)).rowcount
        except DatabaseConnectionLost as error:
            raise CommitStateUnknown(
                f"the reply to dropping {'.'.join(self.table)} was lost: {error}; look whether the table is there",
                table=self.table,
            ) from error
        if not dropped:
            raise no_table(self._database, self.table)

    def swap_in(self, connection: SqlConnection, old: str | None, new: str) -> bool:
        """Swap the pointer as part of a transaction. Raises ``NameTaken`` for a new table with a taken name."""
        if old is None:
            insert_row(connection, self._database, self.table, new)
            return True
        return swap_row(connection, self._database, self.table, self._database.is_table, old, new)


def named(database: Database, name: TableName) -> dict[str, Any]:
    """The values of ``NAMED`` for a table or a view."""
    return {"catalog": database.catalog, "namespace": ".".join(name[:-1]), "name": name[-1]}


def is_view(database: Database, name: TableName) -> bool:
    """Whether a name belongs to a view; tables and views share their names."""
    with looking(database) as connection:
        statement = f"SELECT 1 FROM iceberg_tables WHERE {NAMED} AND NOT {database.is_table}"
        return connection.execute(statement, named(database, name)).fetchone() is not None


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


def insert_row(
    connection: SqlConnection, database: Database, table: TableName, location: str, kind: str = TABLE
) -> None:
    """Insert the row of a new table or view. Raises ``NameTaken``."""
    typed = database.has_type_column
    columns = "catalog_name, table_namespace, table_name, metadata_location" + (", iceberg_type" if typed else "")
    values = ":catalog, :namespace, :name, :location" + (", :kind" if typed else "")
    statement = f"INSERT INTO iceberg_tables ({columns}) VALUES ({values})"
    given = {**named(database, table), "location": location}
    connection.execute(statement, {**given, "kind": kind} if typed else given)


def swap_row(
    connection: SqlConnection, database: Database, name: TableName, condition: str, old: str, new: str
) -> bool:
    """Replace the metadata location of a row if it is ``old``; ``condition`` says of a table or of a view."""
    statement = (
        "UPDATE iceberg_tables SET metadata_location = :new, previous_metadata_location = :old "
        f"WHERE {NAMED} AND {condition} AND metadata_location = :old"
    )
    return connection.execute(statement, {**named(database, name), "old": old, "new": new}).rowcount == 1


def rename_row(
    connection: SqlConnection, database: Database, source: TableName, target: TableName, condition: str
) -> bool:
    """Give a row another name; False if there is none. Raises ``NameTaken``."""
    statement = (
        "UPDATE iceberg_tables SET table_namespace = :new_namespace, table_name = :new_name "
        f"WHERE {NAMED} AND {condition}"
    )
    values = {**named(database, source), "new_namespace": ".".join(target[:-1]), "new_name": target[-1]}
    return connection.execute(statement, values).rowcount == 1


def pointer_of(database: Database, table: TableName) -> str | None:
    """The metadata location of a table, or None."""
    with looking(database) as connection:
        found = location_in(connection, database, table, database.is_table)
    return checked_pointer(table, found)


def location_in(connection: SqlConnection, database: Database, name: TableName, condition: str) -> str | None:
    """The metadata location in a row, or None; ``condition`` says of a table or of a view."""
    location = beginning("metadata_location", MAX_LOCATION_LENGTH)
    statement = f"SELECT {location} FROM iceberg_tables WHERE {NAMED} AND {condition}"
    found = connection.execute(statement, named(database, name)).fetchone()
    return None if found is None else found[0]


@contextmanager
def looking(database: Database) -> Iterator[SqlConnection]:
    """A transaction that only reads, so that a lost connection may be retried."""
    try:
        with database.transaction() as connection:
            yield connection
    except DatabaseConnectionLost as error:
        raise StorageError(f"catalog '{database.catalog}' lost its database: {error}", retryable=True) from error

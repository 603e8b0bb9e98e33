"""Views as rows of ``iceberg_tables`` with their own ``iceberg_type``, as in the JDBC catalog's second schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield.abc import TableName
from icefield.errors import NoSuchView, NotSupportedByCatalog, StorageError, TableExists, ViewExists
from icefield.toolkit import OutcomeUnknown

from icefield_sql.database import Database
from icefield_sql.engines import DatabaseConnectionLost, NameTaken, SqlConnection
from icefield_sql.metastore_views import MetastoreViews
from icefield_sql.strategy import insert_row, is_view, location_in, looking, named, rename_row, swap_row
from icefield_sql.tables import IS_VIEW, NAMED, VIEW

if TYPE_CHECKING:
    from icefield import FileIO


class SqlViews(MetastoreViews):
    """Check-and-put of ``metadata_location`` in the view's row."""

    def __init__(self, database: Database, io: FileIO) -> None:
        super().__init__(io)
        self._database = database

    def read_pointer(self, view: TableName) -> str | None:
        with looking(self._database) as connection:
            if not self._database.has_type_column:
                return None
            return location_in(connection, self._database, view, IS_VIEW)

    def swap_pointer(self, view: TableName, old: str | None, new: str) -> bool:
        try:
            with self._database.transaction() as connection:
                self.require_types()
                if old is None:
                    insert_row(connection, self._database, view, new, VIEW)
                    return True
                return swap_row(connection, self._database, view, IS_VIEW, old, new)
        except NameTaken as error:
            raise self.taken(view) from error
        except DatabaseConnectionLost as error:
            raise OutcomeUnknown(str(error)) from error

    def drop(self, view: TableName) -> None:
        """Drop a view. Raises ``NoSuchView``."""
        try:
            with self._database.transaction() as connection:
                statement = f"DELETE FROM iceberg_tables WHERE {NAMED} AND {IS_VIEW}"
                typed = self._database.has_type_column
                dropped = typed and connection.execute(statement, named(self._database, view)).rowcount
        except DatabaseConnectionLost as error:
            raise StorageError(
                f"the reply to dropping view {'.'.join(view)} was lost: {error}", retryable=True
            ) from error
        if not dropped:
            raise self.missing(view)

    def rename(self, connection: SqlConnection, source: TableName, target: TableName) -> bool:
        """Give a view another name, in a transaction; False when there is no such view."""
        if not self._database.has_type_column:
            return False
        return rename_row(connection, self._database, source, target, IS_VIEW)

    def require_types(self) -> None:
        """Raise ``NotSupportedByCatalog`` for a database of the first schema. Call it in a transaction."""
        if not self._database.has_type_column:
            raise NotSupportedByCatalog(
                f"the database of catalog '{self._database.catalog}' has the first schema of the JDBC catalog, which "
                "holds no views; upgrade it with: ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)"
            )

    def taken(self, view: TableName) -> ViewExists | TableExists:
        """The error for a name that a view or a table has."""
        name, catalog = ".".join(view), self._database.catalog
        if is_view(self._database, view):
            return ViewExists(f"view {name} exists already in catalog '{catalog}'", view=view)
        return TableExists(
            f"a table with the name {name} exists already in catalog '{catalog}'; tables and views share their names",
            table=view,
        )

    def missing(self, view: TableName) -> NoSuchView:
        """The error for a missing view."""
        return NoSuchView(f"no view {'.'.join(view)} in catalog '{self._database.catalog}'", view=view)

"""Queries over a dataset in DuckDB's SQL, for ``pipeline.dataset()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlt.common.destination.typing import PreparedTableSchema
from dlt.common.schema import Schema
from dlt.destinations.impl.duckdb.sql_client import WithTableScanners

if TYPE_CHECKING:
    from icefield_tools.dlt.client import IcefieldClient


class IcefieldSqlClient(WithTableScanners):
    """A connection of DuckDB that sees each table of the dataset as it is when a query begins."""

    def __init__(self, client: IcefieldClient) -> None:
        super().__init__(remote_client=client, dataset_name=client.dataset_name)
        self._client = client

    def can_create_view(self, table_schema: PreparedTableSchema) -> bool:
        """Every table has a view."""
        return True

    def should_replace_view(self, view_name: str, table_schema: PreparedTableSchema) -> bool:
        """Each query sees the newest rows."""
        return True

    def create_view_select(
        self, table_schema: PreparedTableSchema, schema: Schema | None = None
    ) -> tuple[str, str] | None:
        """The query of the view of a table. DuckDB hands its filters and columns to the scan."""
        name = table_schema["name"]
        if not self._client.catalog.table_exists((*self._client.namespace, name)):
            return None
        table = self._client.table(name)
        registered = f"icefield_{name}"
        table.scan().to_duckdb(registered, self._conn)
        columns = ", ".join(self.escape_column_name(each) for each in table_schema["columns"] if each in table.columns)
        return table.location(), f"SELECT {columns} FROM temp.main.{self.escape_column_name(registered)}"

"""The two tables of Iceberg's JDBC catalog, which Java and PyIceberg share, and conditions for their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CREATE: Final[Mapping[str, str]] = {
    "iceberg_tables": (
        "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, "
        "table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
        "iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, table_namespace, table_name))"
    ),
    "iceberg_namespace_properties": (
        "CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT "
        "NULL, property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000), "
        "PRIMARY KEY (catalog_name, namespace, property_key))"
    ),
}
"""The statement that creates each table."""

TABLE = "TABLE"
VIEW = "VIEW"

NAMED: Final = "catalog_name = :catalog AND table_namespace = :namespace AND table_name = :name"
"""The condition for the row of a table or a view."""

IS_VIEW: Final = "iceberg_type = 'VIEW'"
"""The condition for rows of views, in a table that has types."""


def is_table(*, typed: bool) -> str:
    """The condition for rows of tables. Without types, all rows are tables."""
    return "(iceberg_type = 'TABLE' OR iceberg_type IS NULL)" if typed else "1 = 1"


def beginning(column: str, most: int) -> str:
    """A column's value up to one character beyond its limit, so that a longer value is not fetched whole."""
    return f"substr({column}, 1, {most + 1})"

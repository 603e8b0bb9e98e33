"""The two tables of Iceberg's JDBC catalog, which Java and PyIceberg share."""

from __future__ import annotations

from sqlalchemy import Column, Engine, MetaData, String, Table, inspect
from sqlalchemy.exc import OperationalError, ProgrammingError

METADATA = MetaData()

TABLES = Table(
    "iceberg_tables",
    METADATA,
    Column("catalog_name", String(255), primary_key=True, nullable=False),
    Column("table_namespace", String(255), primary_key=True, nullable=False),
    Column("table_name", String(255), primary_key=True, nullable=False),
    Column("metadata_location", String(1000)),
    Column("previous_metadata_location", String(1000)),
    Column("iceberg_type", String(5)),
)

NAMESPACES = Table(
    "iceberg_namespace_properties",
    METADATA,
    Column("catalog_name", String(255), primary_key=True, nullable=False),
    Column("namespace", String(255), primary_key=True, nullable=False),
    Column("property_key", String(255), primary_key=True, nullable=False),
    Column("property_value", String(1000)),
)


def ensure_tables(engine: Engine) -> bool:
    """Create the tables where they are missing; tell whether ``iceberg_tables`` has the column ``iceberg_type``.

    The first version of the JDBC catalog has no such column, and its databases are used as they are.
    """
    try:
        METADATA.create_all(engine)
    except (OperationalError, ProgrammingError):
        # Another process may have created them between the look and the CREATE; if not, this raises again.
        METADATA.create_all(engine)
    return any(column["name"] == "iceberg_type" for column in inspect(engine).get_columns(TABLES.name))

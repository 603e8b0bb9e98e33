"""The two tables of Iceberg's JDBC catalog, which Java and PyIceberg share."""

from __future__ import annotations

from sqlalchemy import Column, ColumnElement, Engine, MetaData, String, Table, func, inspect, or_, true
from sqlalchemy.exc import IntegrityError, NoSuchTableError, OperationalError, ProgrammingError

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

TABLE = "TABLE"
VIEW = "VIEW"


def beginning(column: ColumnElement[str], most: int) -> ColumnElement[str]:
    """A column's value up to one character beyond its limit, so that a longer value is not fetched whole."""
    return func.substr(column, 1, most + 1)


def create_tables(engine: Engine) -> None:
    """Create missing tables."""
    for table in METADATA.sorted_tables:
        try:
            table.create(engine, checkfirst=True)
        except (OperationalError, ProgrammingError, IntegrityError):  # PostgreSQL may raise the last one
            # Another process may have created it between the check and the CREATE; if not, this raises again.
            table.create(engine, checkfirst=True)


def has_type_column(engine: Engine) -> bool | None:
    """Whether ``iceberg_tables`` has the column ``iceberg_type``; None when there is no such table.

    The first version of the JDBC catalog (V0) has no such column, and its databases are used as they are. Later ones
    (V1) hold views in the same table; rows from before an upgrade have no type and are tables.
    """
    try:
        return any(column["name"] == "iceberg_type" for column in inspect(engine).get_columns(TABLES.name))
    except NoSuchTableError:
        return None


def is_table(*, typed: bool) -> ColumnElement[bool]:
    """The condition for rows of tables. Without types, all rows are tables."""
    return or_(TABLES.c.iceberg_type == TABLE, TABLES.c.iceberg_type.is_(None)) if typed else true()

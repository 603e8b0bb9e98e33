"""Engines of others that use a REST server: each attaches it in its own way, and gives the rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
from engines import ClickHouseEngine, DuckDBEngine
from icefield.schema import Schema
from peers import fitted
from plain_rows import Rows, plain_rows
from rest_lake import Served
from servers.spark_runtime import SparkRuntime

Reader = Callable[[str], Rows]
"""Gives the rows of a table ``namespace.name``."""

_numbers = count()


def spark_catalog(spark: SparkRuntime, served: Served, **properties: str) -> str:
    """The name by which Spark's statements find the server's tables."""
    return spark.rest_catalog(served.uri, token=served.token, **properties)


def pyiceberg_client(served: Served, **properties: str) -> Any:
    """PyIceberg's client."""
    from pyiceberg.catalog import load_catalog

    return load_catalog("lake", type="rest", uri=served.uri, token=served.token, **properties)


def duckdb_catalog(engine: DuckDBEngine, served: Served) -> str:
    """Attach the server to DuckDB."""
    name = f"lake{next(_numbers)}"
    engine.execute(f"CREATE SECRET {name} (TYPE iceberg, TOKEN '{served.token}')")
    options = f"TYPE iceberg, ENDPOINT '{served.uri}', SECRET {name}, ACCESS_DELEGATION_MODE 'none'"
    engine.execute(f"ATTACH 'lake' AS {name} ({options})")
    return name


class ClickHouse:
    """A database of ClickHouse with the server's tables."""

    def __init__(self, engine: ClickHouseEngine, served: Served) -> None:
        self._engine = engine
        self.name = f"lake{next(_numbers)}"
        for setting in ("allow_database_iceberg", "allow_insert_into_iceberg"):
            self.run(f"SET {setting} = 1")
        settings = f"catalog_type = 'rest', warehouse = 'lake', auth_header = 'Authorization: Bearer {served.token}'"
        source = f"DataLakeCatalog('{served.uri}/v1')"
        self.run(f"CREATE DATABASE {self.name} ENGINE = {source} SETTINGS {settings}, vended_credentials = 0")

    def table(self, name: str) -> str:
        """A table's name in statements."""
        return f"{self.name}.`{name}`"

    def run(self, statement: str) -> str:
        """Run a statement, and return its answer separated by tabs."""
        return self._engine.query(statement, "TSV").decode()

    def arrow(self, statement: str) -> pa.Table:
        """The rows of a query."""
        return self._engine.arrow(f"{statement} SETTINGS output_format_arrow_string_as_string = 1")


def readers(
    schema: Schema, spark: SparkRuntime, catalogs: tuple[str, ...], peer: Any, duck: Any, lake: str, click: ClickHouse
) -> dict[str, Reader]:
    """Return the readers of all engines by name; Spark once for each of its catalogs."""
    columns = ", ".join(field.name for field in schema.fields)

    def plain(table: pa.Table) -> Rows:
        return plain_rows(fitted(table, schema), schema)

    def of_spark(catalog: str) -> Reader:
        return lambda name: spark.sql(f"SELECT {columns} FROM {catalog}.{name}")

    return {
        **{f"spark {catalog}": of_spark(catalog) for catalog in catalogs},
        "pyiceberg": lambda name: plain(peer.load_table(name).scan().to_arrow()),
        "duckdb": lambda name: plain(duck.execute(f"SELECT {columns} FROM {lake}.{name}").to_arrow_table()),
        "clickhouse": lambda name: plain(click.arrow(f"SELECT {columns} FROM {click.table(name)}")),
    }

"""Queries in DuckDB's SQL over tables of a catalog. They read these tables and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
from icefield.errors import InvalidArgument

from icefield_frames.datasets import ScanDataset
from icefield_frames.libraries import library

_OWN_DATABASES: Final = frozenset({"memory", "system", "temp", ""})
_SETTINGS: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a table is never a variable of this program
}


@contextmanager
def querying(sql: str, scan_of: Callable[[tuple[str, ...]], Any]) -> Iterator[pa.RecordBatchReader]:
    """The result of a query, batch by batch, as long as the context lasts.

    ``scan_of`` gives the scan of a table by its name. Columns and filters of the query reach the scan. DuckDB opens no
    file and no connection, and loads no extension. Raises ``InvalidArgument`` for other statements than one query,
    ``MissingPlugin`` if DuckDB is not installed, and the errors of ``scan_of``.
    """
    duckdb = library("duckdb", "sql")
    with (
        TemporaryDirectory(prefix="icefield-sql-") as folder,
        duckdb.connect(":memory:", config={**_SETTINGS, "temp_directory": folder}) as connection,
    ):
        try:
            names = _tables(connection, sql)
            for number, name in enumerate(names):
                _add(connection, name, f"icefield_{number}", scan_of)
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            with pa.RecordBatchReader.from_stream(connection.sql(sql)) as reader:
                yield reader
        except duckdb.Error as error:
            raise InvalidArgument(f"DuckDB: {error}") from error


def _tables(connection: Any, sql: str) -> list[tuple[str, str, str]]:
    """The tables that a query names with a schema, as database, schema and table; each once."""
    ((found,),) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    parsed = json.loads(found)
    if parsed["error"]:
        reason = parsed["error_message"]
        if parsed.get("error_type") == "not implemented":
            reason = "a statement that is no query; tables are changed by the methods of Table, or by Spark"
        raise InvalidArgument(f"sql takes one query: {reason}")
    if len(parsed["statements"]) != 1:
        raise InvalidArgument(f"sql takes one query, not {len(parsed['statements'])} statements")
    names: dict[tuple[str, str, str], None] = {}
    pending: list[Any] = [parsed]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if node.get("type") == "BASE_TABLE" and node["schema_name"]:
                names[node["catalog_name"], node["schema_name"], node["table_name"]] = None
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return list(names)


def _add(connection: Any, name: tuple[str, str, str], alias: str, scan_of: Callable[[tuple[str, ...]], Any]) -> None:
    """Make a table of the catalog known to DuckDB under the name that the query uses."""
    database, schema, table = name
    if database in _OWN_DATABASES - {""} or schema == "information_schema":
        return
    levels = [level for part in (database, schema) if part for level in part.split(".")]
    scan = scan_of((*levels, table))
    connection.register(alias, ScanDataset(scan, nan_is_greatest=True))
    if database:
        connection.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {_quoted(database)}")
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(database or 'memory')}.{_quoted(schema)}")
    connection.execute(
        f"CREATE VIEW {_quoted(database or 'memory')}.{_quoted(schema)}.{_quoted(table)} "
        f"AS SELECT * FROM temp.{_quoted(alias)}"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

"""Queries in DuckDB's SQL over tables of a catalog. They read these tables and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.dataset as ds
from icefield.errors import InvalidArgument

from icefield_frames.libraries import library

_OWN_NAMES: Final = frozenset({"information_schema", "pg_catalog", "system"})
"""Schemas of DuckDB itself."""

_TABLE_FUNCTIONS: Final = frozenset(
    {
        "generate_series",
        "icu_calendar_names",
        "json_each",
        "json_tree",
        "pg_timezone_names",
        "range",
        "repeat",
        "repeat_row",
        "summary",
        "unnest",
    }
)
"""Table functions that only make rows. Others of DuckDB open files, run statements, or log to files and streams."""

_SETTINGS: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a table is never a variable of this program
}


class QueryTable(NamedTuple):
    """A table as queries read it: a data set, and its columns of UUIDs, which DuckDB takes from Arrow for bytes."""

    dataset: ds.Dataset
    uuids: Sequence[str]


TableOf: TypeAlias = Callable[[tuple[str, ...]], QueryTable]


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits on a query that somebody else wrote; ``QueryProcesses`` keeps them. ``memory`` is in bytes."""

    seconds: float
    memory: int
    threads: int
    rows: int


@contextmanager
def querying(sql: str, table_of: TableOf, limits: QueryLimits | None = None) -> Iterator[pa.RecordBatchReader]:
    """The result of a query, batch by batch, as long as the context lasts.

    ``table_of`` gives a table by its name. Columns and filters of the query reach its data set. DuckDB opens no file
    and no connection, loads no extension, and writes no log; of its table functions, a query has only those that make
    rows. DuckDB does not count all of its memory in ``limits``: run queries of other people by ``QueryProcesses``.

    Raises ``InvalidArgument`` for other statements than one query and for errors of DuckDB, ``MissingPlugin`` if DuckDB
    is not installed, and the errors of ``table_of``.
    """
    duckdb = library("duckdb", "sql")
    with (
        TemporaryDirectory(prefix="icefield-sql-") if limits is None else nullcontext("") as folder,
        duckdb.connect(":memory:", config=_settings(folder, limits)) as connection,
    ):
        try:
            _add_tables(connection, _tables(connection, sql), table_of)
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            relation = connection.sql(sql) if limits is None else connection.sql(sql).limit(limits.rows)
            with pa.RecordBatchReader.from_stream(relation) as reader:
                yield _with_distinct_names(reader)
        except duckdb.Error as error:
            raise InvalidArgument(f"DuckDB: {message_of(error)}") from error
        except RecursionError as error:
            raise InvalidArgument("sql takes one query: this one is nested too deeply") from error


def _settings(folder: str, limits: QueryLimits | None) -> dict[str, str]:
    limited = {} if limits is None else {"max_memory": f"{limits.memory}B", "threads": str(limits.threads)}
    return {**_SETTINGS, **limited, "temp_directory": folder}


def message_of(error: Exception) -> str:
    """The message of an error; of an error in a scan, which DuckDB shows with its traceback, only the last line."""
    message = str(error)
    if "NameListToString" in message:
        return 'a name has at most three parts; quote the levels of a namespace together, as in "a.b.c".t'
    before, traceback, after = message.partition("Traceback (most recent call last)")
    return after.strip().rpartition("\n")[2].strip() if traceback else before


def _with_distinct_names(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The rows with a number behind each name that an earlier column has: a join gives ``id`` and ``id_1``."""
    names: list[str] = []
    for name in reader.schema.names:
        numbered = (f"{name}_{number}" for number in count(1))
        names.append(name if name not in names else next(each for each in numbered if each not in reader.schema.names))
    if names == reader.schema.names:
        return reader
    schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names, strict=True)])
    return pa.RecordBatchReader.from_batches(schema, (batch.rename_columns(names) for batch in reader))


def _tables(connection: Any, sql: str) -> list[tuple[str, str, str]]:
    """The tables that a query names with a schema, as database, schema and table; each once."""
    ((found,),) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    parsed = json.loads(found)
    if parsed["error"]:
        reason = message_of(Exception(parsed["error_message"]))
        if parsed.get("error_type") == "not implemented" and "SELECT" in parsed["error_message"]:
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
            elif node.get("type") == "TABLE_FUNCTION":
                _check_function(node["function"]["function_name"])
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return list(names)


def _add_tables(connection: Any, names: Sequence[tuple[str, str, str]], table_of: TableOf) -> None:
    """Make tables of the catalog known to DuckDB under the names that the query uses."""
    _check(names)
    databases = {database for database, _, _ in names if database} - {"memory", "temp"}
    for database in sorted(databases):
        connection.execute(f"ATTACH ':memory:' AS {_quoted(database)}")
    for number, (database, schema, table) in enumerate(names):
        levels = [level for part in (database, schema) if part for level in part.split(".")]
        found = table_of((*levels, table))
        if not database:  # the first of two parts is a database, if there is one of that name
            is_database = schema in databases or schema in ("memory", "temp")
            database, schema = (schema, "main") if is_database else ("memory", schema)
        _add(connection, (database, schema, table), f"icefield_{number}", found)


def _check_function(name: str) -> None:
    """Refuse a table function of DuckDB that does more than make rows."""
    if name.casefold() not in _TABLE_FUNCTIONS:
        allowed = ", ".join(sorted(_TABLE_FUNCTIONS))
        raise InvalidArgument(
            f"sql takes one query of tables, without DuckDB's function {name:.100}; allowed: {allowed}"
        )


def _check(names: Sequence[tuple[str, str, str]]) -> None:
    """Refuse names that DuckDB has for itself, and names that it does not tell apart."""
    seen: dict[tuple[str, ...], tuple[str, str, str]] = {}
    for name in names:
        if own := _OWN_NAMES & {*name[:2]}:
            raise InvalidArgument(f"'{min(own)}' is a name of DuckDB's own: tables of such a namespace are not queried")
        other = seen.setdefault(tuple(map(str.casefold, name)), name)
        if other != name:
            raise InvalidArgument(
                f"{_dotted(other)} and {_dotted(name)} differ in case only, which DuckDB does not tell apart"
            )


def _add(connection: Any, name: tuple[str, str, str], alias: str, found: QueryTable) -> None:
    """Make a view of a table."""
    database, schema, table = name
    connection.register(alias, found.dataset)
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(database)}.{_quoted(schema)}")
    _replaced = ", ".join(f"CAST(hex({_quoted(each)}) AS UUID) AS {_quoted(each)}" for each in found.uuids)
    _columns = f"* REPLACE ({_replaced})" if found.uuids else "*"
    connection.execute(
        f"CREATE VIEW {_quoted(database)}.{_quoted(schema)}.{_quoted(table)} "
        f"AS SELECT {_columns} FROM temp.main.{_quoted(alias)}"
    )


def _dotted(name: tuple[str, str, str]) -> str:
    return ".".join(filter(None, name))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

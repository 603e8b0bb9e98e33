"""Queries in DuckDB's SQL over tables of a catalog. They read these tables and nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
from icefield.errors import InvalidArgument
from icefield.types import UUIDType

from icefield_frames.datasets import ScanDataset
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

_WITHOUT_END: Final = frozenset({"damerau_levenshtein", "editdist3", "levenshtein"})
"""Functions whose time grows with the product of two lengths. DuckDB does not interrupt them within a value."""

_SETTINGS: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a table is never a variable of this program
}


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits on a query that somebody else wrote. ``memory`` is a size as DuckDB writes it; nothing is put on disk.

    DuckDB does not count single long values, such as the result of ``repeat``, and interrupts a query only between
    batches of rows.
    """

    seconds: float
    memory: str
    threads: int
    rows: int


@contextmanager
def querying(
    sql: str, scan_of: Callable[[tuple[str, ...]], Any], limits: QueryLimits | None = None
) -> Iterator[pa.RecordBatchReader]:
    """The result of a query, batch by batch, as long as the context lasts.

    ``scan_of`` gives the scan of a table by its name. Columns and filters of the query reach the scan. DuckDB opens no
    file and no connection, loads no extension, and writes no log; of its table functions, a query has only those that
    make rows. Raises ``InvalidArgument`` for other statements than one query and for a query beyond its limits,
    ``MissingPlugin`` if DuckDB is not installed, and the errors of ``scan_of``.
    """
    duckdb = library("duckdb", "sql")
    with (
        TemporaryDirectory(prefix="icefield-sql-") as folder,
        duckdb.connect(":memory:", config=_settings(folder, limits)) as connection,
        _interrupted(connection, limits) as is_late,
    ):
        try:
            _add_tables(connection, _tables(connection, sql, is_limited=limits is not None), scan_of)
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            relation = connection.sql(sql) if limits is None else connection.sql(sql).limit(limits.rows)
            with pa.RecordBatchReader.from_stream(relation) as reader:
                yield _with_distinct_names(reader)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            if limits is not None and is_late.is_set():
                raise InvalidArgument(f"the query was stopped after {limits.seconds:g} s") from error
            if not isinstance(error, duckdb.Error):
                raise
            raise InvalidArgument(f"DuckDB: {_message(error)}") from error
        except RecursionError as error:
            raise InvalidArgument("sql takes one query: this one is nested too deeply") from error


def _settings(folder: str, limits: QueryLimits | None) -> dict[str, str]:
    if limits is None:
        return {**_SETTINGS, "temp_directory": folder}
    return {**_SETTINGS, "temp_directory": "", "max_memory": limits.memory, "threads": str(limits.threads)}


@contextmanager
def _interrupted(connection: Any, limits: QueryLimits | None) -> Iterator[threading.Event]:
    """Stop what the connection does as often as needed once the time is up; the event tells so."""
    is_late, ended = threading.Event(), threading.Event()
    if limits is None:
        yield is_late
        return

    def watch() -> None:
        while not ended.wait(0.1 if is_late.is_set() else limits.seconds):
            is_late.set()
            connection.interrupt()

    thread = threading.Thread(target=watch, name="icefield-sql-limit", daemon=True)
    thread.start()
    try:
        yield is_late
    finally:
        ended.set()
        thread.join()


def _message(error: Exception) -> str:
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


def _tables(connection: Any, sql: str, *, is_limited: bool) -> list[tuple[str, str, str]]:
    """The tables that a query names with a schema, as database, schema and table; each once.

    ``is_limited`` refuses functions that DuckDB does not interrupt.
    """
    ((found,),) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    parsed = json.loads(found)
    if parsed["error"]:
        reason = _message(Exception(parsed["error_message"]))
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
            elif is_limited and str(node.get("function_name")).casefold() in _WITHOUT_END:
                name = node["function_name"]
                raise InvalidArgument(f"sql takes no function {name:.100} here: a limit on time does not stop it")
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return list(names)


def _add_tables(
    connection: Any, names: Sequence[tuple[str, str, str]], scan_of: Callable[[tuple[str, ...]], Any]
) -> None:
    """Make tables of the catalog known to DuckDB under the names that the query uses."""
    _check(names)
    databases = {database for database, _, _ in names if database} - {"memory", "temp"}
    for database in sorted(databases):
        connection.execute(f"ATTACH ':memory:' AS {_quoted(database)}")
    for number, (database, schema, table) in enumerate(names):
        levels = [level for part in (database, schema) if part for level in part.split(".")]
        scan = scan_of((*levels, table))
        if not database:  # the first of two parts is a database, if there is one of that name
            is_database = schema in databases or schema in ("memory", "temp")
            database, schema = (schema, "main") if is_database else ("memory", schema)
        uuids = [field.name for field in scan.projection.fields if isinstance(field.field_type, UUIDType)]
        _add(connection, (database, schema, table), f"icefield_{number}", scan, uuids)


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


def _add(connection: Any, name: tuple[str, str, str], alias: str, scan: Any, uuids: Sequence[str]) -> None:
    """Make a view of a scan. DuckDB takes UUIDs from Arrow for bytes."""
    database, schema, table = name
    connection.register(alias, ScanDataset(scan, nan_is_greatest=True))
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(database)}.{_quoted(schema)}")
    _replaced = ", ".join(f"CAST(hex({_quoted(each)}) AS UUID) AS {_quoted(each)}" for each in uuids)
    _columns = f"* REPLACE ({_replaced})" if uuids else "*"
    connection.execute(
        f"CREATE VIEW {_quoted(database)}.{_quoted(schema)}.{_quoted(table)} "
        f"AS SELECT {_columns} FROM temp.main.{_quoted(alias)}"
    )


def _dotted(name: tuple[str, str, str]) -> str:
    return ".".join(filter(None, name))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

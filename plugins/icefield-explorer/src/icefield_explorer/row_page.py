"""The page with rows: a sample of a table, or the result of one query in DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from icefield import IcefieldError, Table
from icefield.metadata import Snapshot
from icefield.toolkit import reset_after_fork
from icefield_frames.duckdb_queries import QueryLimits
from icefield_frames.query_processes import QueriesBusy, QueryProcesses
from icefield_report.formats import short
from icefield_rest_server import Answer, PageRequest, Refused

from icefield_explorer.rendering import text_of
from icefield_explorer.visits import MOST_NAME, TableVisit

_SAMPLE: Final = 50
_MOST_ROWS: Final = 500
_MOST_COLUMNS: Final = 200
_MOST_TEXT: Final = 200
"""Characters of a value."""

_MOST_NESTED: Final = 64 * 1024
"""Bytes of a nested value."""

_MOST_SHOWN: Final = 400_000
"""Characters of all values; rows after them are left out."""

_STEP: Final = 5
"""Rows that become texts together."""

_LIMITS: Final = QueryLimits(seconds=20.0, memory=512_000_000, threads=2, rows=_MOST_ROWS + 1)
_AT_ONCE: Final = 2
"""Queries at the same time in a process."""

_QUERIES = QueryProcesses(_LIMITS, _AT_ONCE)


def _begin_again() -> None:
    global _QUERIES
    _QUERIES = QueryProcesses(_LIMITS, _AT_ONCE)


reset_after_fork(_begin_again)


def rows(request: PageRequest) -> Answer:
    """The page with a sample of the rows, or with the result of a query over tables that the client may read."""
    visit = TableVisit.of(request, "rows")
    table, sql, at = visit.table, visit.asked("sql", 20_000), visit.asked("at", MOST_NAME)
    name, snapshot = table.name(), visit.snapshot(at)
    quoted = ".".join('"' + level.replace('"', '""') + '"' for level in (".".join(name[:-1]), name[-1]))
    values: dict[str, Any] = {
        "sql": sql or f"SELECT * FROM {quoted} LIMIT {_SAMPLE}",
        "at": at,
        "head": [],
        "rows": [],
        "more": False,
        "error": "",
        "held": False,
        "gives": request.access.gives_rows(table),
    }
    if not values["gives"]:
        return visit.page("rows.html", **values)
    if request.is_foreign:
        return visit.page("rows.html", **{**values, "held": True})
    try:
        values |= (
            _queried(request, sql) if sql else visit.result("rows", lambda: _sampled(table, snapshot, at), at) or {}
        )
    except QueriesBusy as error:
        raise Refused(503, "ServiceUnavailableException", error.message, {"Retry-After": "5"}) from error
    except IcefieldError as error:
        values["error"] = error.message
    return visit.page("rows.html", **values)


def _sampled(table: Table, snapshot: Snapshot | None, at: str) -> dict[str, Any]:
    if snapshot is None:
        return {}
    scan = table.scan(snapshot_id=snapshot.snapshot_id if at else None, limit=_SAMPLE)
    return _shown(iter(scan.to_arrow().to_batches()), [field.name for field in scan.projection.fields], _SAMPLE)


def _queried(request: PageRequest, sql: str) -> dict[str, Any]:
    def scan_of(name: tuple[str, ...]) -> Any:
        table = request.access.table(name)
        if not request.access.gives_rows(table):
            raise Refused(403, "ForbiddenException", f"you may not read the rows of {'.'.join(name):.300}")
        return table.scan()

    with _QUERIES.querying(sql, scan_of, request.gone) as found:
        return _shown(iter(found), found.schema.names, _MOST_ROWS)


def _shown(batches: Iterator[pa.RecordBatch], names: list[str], most: int) -> dict[str, Any]:
    """The first rows as texts, each value cut."""
    shown: list[list[str]] = []
    more, left = False, _MOST_SHOWN
    for batch in batches:
        taken = batch.slice(0, most - len(shown))
        for first in range(0, taken.num_rows if taken.num_columns else 0, _STEP):
            columns = [_texts(column) for column in taken.slice(first, _STEP).columns[:_MOST_COLUMNS]]
            shown += map(list, zip(*columns, strict=True))
            left -= sum(len(value) for column in columns for value in column)
            if left < 0:
                return {"head": names[:_MOST_COLUMNS], "rows": shown, "more": True}
        more = taken.num_rows < batch.num_rows
        if more:
            break
    return {"head": names[:_MOST_COLUMNS], "rows": shown, "more": more}


def _texts(column: pa.Array) -> list[str]:
    """Values as texts. Large nested values are not converted: one may hold millions of others."""
    if not pa.types.is_nested(column.type):
        return [_text(value) for value in column]
    sizes = (column.slice(place, 1).nbytes for place in range(len(column)))
    return [
        f"({size:,} bytes)" if size > _MOST_NESTED else _text(value) for size, value in zip(sizes, column, strict=True)
    ]


def _text(value: Any) -> str:
    """A value as text; null is empty. Long bytes and strings are cut before they are converted."""
    if not value.is_valid:
        return ""
    kind = value.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return short(memoryview(value.as_buffer())[:_MOST_TEXT].hex(), _MOST_TEXT)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return short(bytes(memoryview(value.as_buffer())[: 8 * _MOST_TEXT]).decode("utf-8", "ignore"), _MOST_TEXT)
    return short(text_of(value)[: 8 * _MOST_TEXT], _MOST_TEXT)

"""The filter, the limit and the printing of commands that show rows of a table, as they come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa
from icefield import Schema
from icefield.expressions import AlwaysTrue, BooleanExpression

from icefield_cli.context import Context
from icefield_cli.progress import Progress
from icefield_cli.rows import rows_of

_LIMIT = 20


class Scan(Protocol):
    """The common interface of scans of rows and of changes."""

    @property
    def projection(self) -> Schema:
        """The columns that are read."""

    def count(self) -> int:
        """The number of rows."""

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows, batch by batch."""


def filter_of(where: str | None) -> BooleanExpression | str:
    """Return the filter of ``where``: every row if it was not given. The kernel refuses an empty filter."""
    return AlwaysTrue() if where is None else where


def limit_of(rows: dict[str, Any]) -> int | None:
    """The most rows to read, as the row options say; None for all."""
    if rows["count"] or rows["all"]:
        return None
    return _LIMIT if rows["limit"] is None else int(rows["limit"])


def print_scan(context: Context, scan: Scan, options: dict[str, Any]) -> None:
    """Print the rows of a scan as they come, or how many they are.

    If the default limit is reached, the standard error says so.
    """
    if options["count"]:
        with context.progress("counting"):
            number = scan.count()
        context.record({"rows": number})
        return
    with context.progress("rows", prints=True) as progress, scan.to_arrow_batch_reader() as reader:
        passed = _Counted(reader, progress)
        context.rows(rows_of(passed, scan.projection), [field.name for field in scan.projection.fields], data=True)
    if not options["all"] and options["limit"] is None and passed.rows == _LIMIT:
        context.hint(f"at most {_LIMIT} rows are printed; --all prints every row")


class _Counted:
    """Batches, counted as they pass."""

    def __init__(self, batches: pa.RecordBatchReader, progress: Progress) -> None:
        self._batches, self._progress = batches, progress
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            yield batch
            self.rows += batch.num_rows
            self._progress.advance(batch.num_rows)

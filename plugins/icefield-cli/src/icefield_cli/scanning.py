"""The filter, the limit and the printing of commands that show rows of a table, as they come."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa
from icefield import Schema
from icefield.expressions import AlwaysTrue, BooleanExpression

from icefield_cli.context import FILES, Context
from icefield_cli.hookspecs import WrongUsage

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


def limit_of(context: Context, rows: dict[str, Any]) -> int | None:
    """The most rows to read, as the row options say; None for all. A file of rows has all of them by default."""
    if rows["count"] or rows["all"] or (context.form in FILES and rows["limit"] is None):
        return None
    return _LIMIT if rows["limit"] is None else int(rows["limit"])


def print_scan(context: Context, scan: Scan, options: dict[str, Any]) -> None:
    """Print the rows of a scan as they come, or how many they are.

    If the default limit is reached, the standard error says so.
    """
    if options["count"]:
        if context.form in FILES:
            raise WrongUsage(f"'--count' prints no rows, which '--output {context.form}' is for")
        with context.progress("counting"):
            number = scan.count()
        context.record({"rows": number})
        return
    print_batches(context, scan.to_arrow_batch_reader(), scan.projection, options)


def print_batches(
    context: Context, batches: pa.RecordBatchReader, schema: Schema | None, options: dict[str, Any]
) -> None:
    """Print rows of Arrow as they come, and close them. If the default limit is reached, the standard error says so."""
    printed = 0
    with context.progress("rows", prints=True), batches as reader:

        def count(rows: int) -> None:
            nonlocal printed
            printed += rows

        context.batches(reader, schema, count=count)
    if limit_of(context, options) == printed == _LIMIT and options["limit"] is None:
        context.hint(f"at most {_LIMIT} rows are printed; --all prints every row")

"""What the commands that print rows of a table share: how many, which columns, and rows as they come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import click
import pyarrow as pa
from icefield import Schema

from icefield_cli.context import Context
from icefield_cli.options import Function, count, flag, names_option, where_option
from icefield_cli.progress import Progress
from icefield_cli.rows import rows_of

EXCLUSIVE = ("limit", "all", "count")
_LIMIT = 20


class Scan(Protocol):
    """What scans of rows and of changes have in common."""

    @property
    def projection(self) -> Schema:
        """The columns that are read."""

    def count(self) -> int:
        """The number of rows."""

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows, batch by batch."""


def row_options(function: Function) -> Function:
    """Declare ``where``, ``columns``, ``limit``, ``all`` and ``count``; the last three are ``EXCLUSIVE``."""
    for option in (
        flag("--count", "Print the number of rows only."),
        flag("--all", "Every row."),
        click.option("--limit", type=count, metavar="N", default=_LIMIT, help=f"The most rows; default: {_LIMIT}."),
        names_option("--columns", "The columns, separated by commas."),
        where_option("A filter, such as \"kind in ('a', 'b')\"."),
    ):
        function = option(function)
    return function


def limit_of(rows: dict[str, Any]) -> int | None:
    """The most rows to read, as the row options say; None for all."""
    return None if rows["count"] or rows["all"] else rows["limit"]


def print_scan(context: Context, scan: Scan, *, only_count: bool) -> None:
    """Print the rows of a scan as they come, or how many they are."""
    if only_count:
        with context.progress("counting"):
            number = scan.count()
        context.record({"rows": number})
        return
    with context.progress("rows", prints=True) as progress, scan.to_arrow_batch_reader() as reader:
        rows = rows_of(_counted(reader, progress), scan.projection)
        context.rows(rows, [field.name for field in scan.projection.fields])


def _counted(batches: pa.RecordBatchReader, progress: Progress) -> Iterator[pa.RecordBatch]:
    """The batches, counted as they pass."""
    for batch in batches:
        yield batch
        progress.advance(batch.num_rows)

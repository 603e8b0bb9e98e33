"""Print rows of a table."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pyarrow as pa
from icefield.expressions import AlwaysTrue

from icefield_cli.commands.versions import add_version_options, scan_of
from icefield_cli.context import Context, count
from icefield_cli.progress import Progress
from icefield_cli.rows import rows_of

NAME = "scan"
_LIMIT = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table, or a metadata file")
    parser.add_argument("--where", metavar="FILTER", help="a filter, such as \"kind in ('a', 'b')\"")
    parser.add_argument("--columns", metavar="NAMES", help="the columns, separated by commas")
    some = parser.add_mutually_exclusive_group()
    some.add_argument("--limit", type=count, default=_LIMIT, metavar="N", help=f"the most rows; default: {_LIMIT}")
    some.add_argument("--all", action="store_true", help="every row")
    some.add_argument("--count", action="store_true", help="print the number of matching rows only")
    add_version_options(parser)


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    columns = tuple(name.strip() for name in given.columns.split(",")) if given.columns else ("*",)
    scan = scan_of(
        context.table(given.table),
        given,
        row_filter=given.where or AlwaysTrue(),
        selected_fields=columns,
        limit=None if given.count or given.all else given.limit,
    )
    if given.count:
        with context.progress("counting"):
            number = scan.count()
        context.record({"rows": number})
        return
    with context.progress("rows", prints=True) as progress, scan.to_arrow_batch_reader() as reader:
        rows = rows_of(counted(reader, progress), scan.projection)
        context.rows(rows, [field.name for field in scan.projection.fields])


def counted(batches: pa.RecordBatchReader, progress: Progress) -> Iterator[pa.RecordBatch]:
    """The batches, counted as they pass."""
    for batch in batches:
        yield batch
        progress.advance(batch.num_rows)

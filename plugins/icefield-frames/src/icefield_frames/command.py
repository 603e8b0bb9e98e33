"""The command ``icefield sql``: a query over tables of a catalog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from icefield_cli import Context, limit_of, print_batches

from icefield_frames.duckdb_queries import querying


def run(context: Context, query: str, **rows: Any) -> None:
    """Run the command."""
    options = {"count": False, **rows}

    def scan_of(name: tuple[str, ...]) -> Any:
        return context.catalog.load_table(name).scan()

    with querying(query, scan_of) as found:
        limit = limit_of(context, options)
        first = found if limit is None else pa.RecordBatchReader.from_batches(found.schema, _first(found, limit))
        print_batches(context, first, None, options)


def _first(batches: pa.RecordBatchReader, limit: int) -> Iterator[pa.RecordBatch]:
    """Only as many rows as the limit says."""
    for batch in batches:
        yield batch.slice(0, limit)
        limit -= batch.num_rows
        if limit <= 0:
            return

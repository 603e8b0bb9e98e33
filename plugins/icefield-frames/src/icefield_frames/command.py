"""The command ``icefield sql``: a query over tables of a catalog."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from icefield_cli import Context, limit_of, print_batches

from icefield_frames.duckdb_queries import QueryTable, querying
from icefield_frames.duckdb_relations import query_table
from icefield_frames.selection import first_rows


def run(context: Context, query: str, **rows: Any) -> None:
    """Run the command."""
    options = {"count": False, **rows}

    def table_of(name: tuple[str, ...]) -> QueryTable:
        return query_table(context.catalog.load_table(name).scan())

    with querying(query, table_of) as found:
        limit = limit_of(context, options)
        first = found if limit is None else pa.RecordBatchReader.from_batches(found.schema, first_rows(found, limit))
        print_batches(context, first, None, options)

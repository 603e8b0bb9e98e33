"""Columns that come in pieces, put together."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece, which it shares where it has no more than one; empty where it has none."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def with_columns(rows: pa.RecordBatch, changed: Mapping[int, tuple[pa.Field, pa.Array]]) -> pa.RecordBatch:
    """Rows with other columns at some places: one copy of the list of columns, however many change."""
    if not changed:
        return rows
    fields, columns = list(rows.schema), rows.columns
    for at, (field, column) in changed.items():
        fields[at], columns[at] = field, column
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, rows.schema.metadata))

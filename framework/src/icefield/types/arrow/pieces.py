"""Conversion of chunked columns to single arrays, and replacement of columns in batches."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array: a single chunk is shared, several are copied, and no chunk is an empty array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def with_columns(rows: pa.RecordBatch, changed: Mapping[int, tuple[pa.Field, pa.Array]]) -> pa.RecordBatch:
    """Replace columns of a batch by position, with one copy of the list of columns for all changes."""
    if not changed:
        return rows
    fields, columns = list(rows.schema), rows.columns
    for at, (field, column) in changed.items():
        fields[at], columns[at] = field, column
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, rows.schema.metadata))

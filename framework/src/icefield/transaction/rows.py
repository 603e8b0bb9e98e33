"""Converts the rows that callers give, and writes them into data files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.manifest.data_file import DataFile
from icefield.metadata import TableMetadata
from icefield.partitioning.sort_order import sort_table
from icefield.schema import Schema
from icefield.storage import FileIO
from icefield.writing.conforming import Conforming
from icefield.writing.context import WriteContext
from icefield.writing.data_writer import pieces_of, write_batches, write_conformed
from icefield.writing.files import FileSet

Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.RecordBatch]
"""Rows in Arrow; an object that exports an Arrow stream is accepted as well."""


def batches_of(df: Any) -> Any:
    """Rows as record batches. Raises ``InvalidArgument`` for an object without rows."""
    if isinstance(df, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return df
    if hasattr(df, "__arrow_c_stream__"):
        try:
            return pa.RecordBatchReader.from_stream(df)
        except pa.ArrowInvalid as error:
            raise InvalidArgument(
                f"rows are columns with names, and the Arrow stream of {type(df).__name__} holds none: {error}"
            ) from error
    if isinstance(df, Iterable) and not isinstance(df, str | bytes | dict):
        return _checked(df)
    hint = "; pyarrow.table(columns) makes a table of a dict of columns" if isinstance(df, dict) else ""
    raise InvalidArgument(
        f"rows are given as a pyarrow Table, RecordBatch or RecordBatchReader, or as anything that exports an Arrow "
        f"stream, not as {type(df).__name__}{hint}"
    )


def table_of(df: Any) -> pa.Table:
    """Rows as one table in memory. Raises ``InvalidArgument`` for an object without rows, or without columns."""
    rows = batches_of(df)
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    batches = [rows] if isinstance(rows, pa.RecordBatch) else list(rows)
    if not batches:
        raise InvalidArgument("no record batch states the columns of these rows; give an empty pyarrow table instead")
    return pa.Table.from_batches(batches)


def write_rows(
    metadata: TableMetadata, io: FileIO, batches: Any, note: Callable[[str], None] | None = None
) -> list[DataFile]:
    """Write rows into new data files of a table. An error leaves no file.

    A table in memory is sorted first if the table has a sort order, which its files then name. A stream is written
    in its own order. ``note`` is passed to ``write_batches``.
    """
    context = WriteContext.from_metadata(metadata, io)
    order = metadata.sort_order()
    if isinstance(batches, pa.Table) and order.fields and all(field.is_known for field in order.fields):
        conforming = Conforming(context.schema, batches.schema)
        # Not in one chunk: sorting makes the one copy that is needed, column by column.
        rows = pa.Table.from_batches(map(conforming.apply, batches.to_batches()), schema=conforming.schema)
        ordered = replace(context, sort_order_id=order.order_id)
        pieces = pieces_of(sort_table(order, context.schema, rows))
        return write_conformed(pieces, FileSet(ordered, note=note))
    return write_batches(context, batches, note=note)


def conformed(schema: Schema, rows: pa.Table) -> pa.Table:
    """Conform rows to the table's schema, in one chunk. Raises ``InvalidArgument`` for rows that it cannot hold."""
    conforming = Conforming(schema, rows.schema)
    batches = [conforming.apply(batch) for batch in rows.combine_chunks().to_batches()]
    return pa.Table.from_batches(batches, schema=conforming.schema)


def _checked(batches: Iterable[Any]) -> Iterable[pa.RecordBatch]:
    for batch in batches:
        if isinstance(batch, pa.Table):
            yield from batch.to_batches()
        elif isinstance(batch, pa.RecordBatch):
            yield batch
        else:
            raise InvalidArgument(
                f"an iterable of rows holds pyarrow record batches, not {type(batch).__name__}"
                + ("; pyarrow.Table.from_pylist(rows) makes a table of dicts" if isinstance(batch, dict) else "")
            )

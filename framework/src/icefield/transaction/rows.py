"""Converts the rows that callers give, and writes them into data files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final, TypeAlias

import pyarrow as pa

from icefield.abc import OperationProgress
from icefield.errors import InvalidArgument
from icefield.manifest.data_file import DataFile
from icefield.metadata import TableMetadata
from icefield.partitioning.sort_order import sort_table
from icefield.schema import Schema, as_schema
from icefield.transaction.action import ActionContext
from icefield.types import NestedField, StructType
from icefield.writing.conforming import Conforming
from icefield.writing.context import WriteContext
from icefield.writing.data_writer import pieces_of, write_batches, write_conformed
from icefield.writing.files import FileSet

Rows: TypeAlias = (
    pa.Table | pa.RecordBatch | pa.RecordBatchReader | Mapping[str, Any] | Iterable[pa.RecordBatch | Mapping[str, Any]]
)
"""Rows: Arrow data, a frame of any library with Arrow streams, a dataset, a dict of columns, or dicts (one a row)."""

_ROWS: Final = ("__arrow_c_stream__", "collect_schema", "to_reader", "scanner")
"""Methods of objects that hold rows."""

_COMPUTED_ROWS: Final = 131_072
"""The maximum number of rows that a lazy frame computes at a time."""

_INDEX: Final = "__index_level_"
"""The name of a column that pandas makes of an index without a name."""


def batches_of(df: Any) -> Any:
    """Rows as a table, a batch, a reader or an iterator of batches. Raises ``InvalidArgument`` for any other object.

    Lazy frames, datasets and scanners are streamed. Python values are converted at once.
    """
    if isinstance(df, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return df
    if hasattr(df, "__arrow_c_stream__"):
        return _streamed(df)
    if hasattr(df, "collect_schema"):  # a lazy frame
        return _computed(df)
    if hasattr(df, "to_reader") or hasattr(df, "scanner"):
        return (df if hasattr(df, "to_reader") else df.scanner()).to_reader()
    if isinstance(df, Mapping):
        return _table(df)
    if isinstance(df, Sequence) and df and isinstance(df[0], Mapping):
        return _table_of_dicts(df)
    if isinstance(df, Iterable) and not isinstance(df, str | bytes):
        return _checked(df)
    raise InvalidArgument(
        f"rows are given as a pyarrow Table, RecordBatch or RecordBatchReader, as anything that exports an Arrow "
        f"stream, as a dataset, or as dicts, not as {type(df).__name__}"
    )


def with_columns_known(df: Any) -> tuple[pa.Schema, Any]:
    """The columns of rows, and the rows. Raises ``InvalidArgument`` for rows that state no column."""
    rows = batches_of(df)
    if not hasattr(rows, "schema"):
        first = next(rows, None)
        if first is None:
            raise InvalidArgument("no record batch states the columns of these rows; give an empty pyarrow table")
        rows = pa.RecordBatchReader.from_batches(first.schema, chain([first], rows))
    return rows.schema, rows


def columns_of(given: Any, format_version: int) -> Schema:
    """The schema of a new table, from a schema in any form or from rows. Raises ``InvalidArgument``."""
    if not (isinstance(given, Schema | pa.Schema | str | bytes) or hasattr(given, "__arrow_c_schema__")) and (
        isinstance(given, Iterable) or any(hasattr(given, each) for each in _ROWS)
    ):
        given, _ = with_columns_known(given)
    return as_schema(given, format_version)


def lacking(held: Sequence[NestedField], given: Sequence[NestedField]) -> list[NestedField]:
    """The given fields that a table lacks, all optional; of a struct that it has, the struct with those it lacks."""
    own, found = {field.name: field for field in held}, []
    spelled = {name.lower() for name in own}
    for field in given:
        kind = field.field_type
        if field.name in own:
            mine = own[field.name]
            if isinstance(kind, StructType) and isinstance(mine.field_type, StructType):
                inner = lacking(mine.field_type.fields, kind.fields)
                if inner:
                    found.append(NestedField(field.field_id, field.name, StructType(*inner), mine.required))
        elif field.name.lower() not in spelled:  # another case is an error of the caller's
            found.append(NestedField(field.field_id, field.name, kind))
    return found


def table_of(df: Any) -> pa.Table:
    """Rows as one table in memory. Raises ``InvalidArgument`` for an object without rows, or without columns."""
    _, rows = with_columns_known(df)
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    return rows if isinstance(rows, pa.Table) else rows.read_all()


def write_rows(metadata: TableMetadata, action: ActionContext, rows: Any) -> list[DataFile]:
    """Write rows into new data files of a table, which are noted for ``action``. An error leaves no file.

    A table in memory is sorted first if the table has a sort order, which its files then name. A stream is written
    in its own order.
    """
    context, order = WriteContext.from_metadata(metadata, action.io), metadata.sort_order()
    event = OperationProgress(action.name, "write", "rows", 0, getattr(rows, "num_rows", None))
    counting, note = action.io.listeners.counting, action.written.add
    if isinstance(rows, pa.Table) and order.fields and all(field.is_known for field in order.fields):
        conforming = Conforming(context.schema, rows.schema)
        # Not in one chunk: sorting makes the one copy that is needed, column by column.
        rows = pa.Table.from_batches(map(conforming.apply, rows.to_batches()), schema=conforming.schema)
        ordered = replace(context, sort_order_id=order.order_id)
        pieces = counting(pieces_of(sort_table(order, context.schema, rows)), event)
        return write_conformed(pieces, FileSet(ordered, note=note))
    return write_batches(context, counting(pieces_of(rows), event), note=note)


def conformed(schema: Schema, rows: pa.Table) -> pa.Table:
    """Conform rows to the table's schema, in one chunk. Raises ``InvalidArgument`` for rows that it cannot hold."""
    conforming = Conforming(schema, rows.schema)
    batches = [conforming.apply(batch) for batch in rows.combine_chunks().to_batches()]
    return pa.Table.from_batches(batches, schema=conforming.schema)


def _checked(batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    rows = iter(batches)
    for batch in rows:
        if isinstance(batch, pa.RecordBatch):
            yield batch
        elif isinstance(batch, Mapping):
            yield from _table_of_dicts([batch, *rows]).to_batches()
        elif isinstance(batch, pa.Table):
            yield from batch.to_batches()
        elif hasattr(batch, "__arrow_c_stream__"):
            yield from _streamed(batch)
        else:
            raise InvalidArgument(
                f"an iterable of rows holds pyarrow record batches, or dicts only, not {type(batch).__name__}"
            )


def _computed(frame: Any) -> pa.RecordBatchReader:
    """The rows of a Polars lazy frame, computed in bounded memory while they are read.

    Polars before 2.0 ends such batches at an error as if they were complete, so there all rows are computed first.
    """
    if int(sys.modules["polars"].__version__.partition(".")[0]) < 2:
        return _streamed(frame.collect())
    parts = frame.collect_batches(chunk_size=_COMPUTED_ROWS, maintain_order=True, lazy=True, engine="streaming")
    return pa.RecordBatchReader.from_batches(_streamed(frame.head(0).collect()).schema, _checked(parts))


def _streamed(df: Any) -> pa.RecordBatchReader:
    """The Arrow stream of a frame, without the columns that pandas makes of an index without a name."""
    kinds = getattr(df, "schema", None)
    for name, kind in kinds.items() if isinstance(kinds, Mapping) else ():
        if str(kind) == "Object":  # Polars hands over the addresses of Python objects, as bytes
            raise InvalidArgument(f"column '{name}' cannot be written: it holds Python objects; cast it", column=name)
    try:
        reader = pa.RecordBatchReader.from_stream(df)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:  # pandas raises them, too
        if "non-struct type" in str(error):
            why = f"rows are columns with names, and the Arrow stream of {type(df).__name__} holds none: {error}"
        else:
            why = f"this {type(df).__name__} has no Arrow form: {'; '.join(map(str, error.args))}"
        raise InvalidArgument(why) from error
    if b"pandas" not in (reader.schema.metadata or {}):
        return reader
    kept = [each for each in range(len(reader.schema)) if not reader.schema.field(each).name.startswith(_INDEX)]
    if len(kept) == len(reader.schema):
        return reader
    columns = pa.schema([reader.schema.field(each) for each in kept])
    return pa.RecordBatchReader.from_batches(columns, (batch.select(kept) for batch in reader))


def _table(columns: Mapping[Any, Any]) -> pa.Table:
    """A table of columns by name, each an Arrow array or Python values."""
    arrays = {}
    for name, values in columns.items():
        if not isinstance(name, str) or isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidArgument(f"rows in a dict are lists of values by names of columns; see {name!r:.80}")
        try:
            arrays[name] = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            why = f"column '{name}' cannot be written: its values have no common Arrow type: {error}"
            raise InvalidArgument(why, column=name) from error
    if len({len(array) for array in arrays.values()}) > 1:
        lengths = ", ".join(f"{name} {len(array)}" for name, array in arrays.items())
        raise InvalidArgument(f"the columns of these rows have different lengths: {lengths:.500}")
    return pa.table(arrays)


def _table_of_dicts(rows: Sequence[Any]) -> pa.Table:
    """A table of rows; a key that a row lacks is null."""
    for row in rows:
        if not isinstance(row, Mapping):
            raise InvalidArgument(f"an iterable of rows holds dicts only, or none; this one holds {type(row).__name__}")
    names = dict.fromkeys(name for row in rows for name in row)
    return _table({name: [row.get(name) for row in rows] for name in names})

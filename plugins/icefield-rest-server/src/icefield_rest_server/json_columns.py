"""Columns as JSON text, a string for each row, without a Python object for each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Text: TypeAlias = pa.LargeStringArray
_TEXT: Final = pa.large_string()


def row_texts(*parts: Text | str) -> Text:
    """Join the parts of each row; a string is the same part in every row. Null where a part is null."""
    return pc.binary_join_element_wise(
        *(pa.scalar(one, _TEXT) if isinstance(one, str) else one for one in (*parts, ""))
    )


def elements(rows: Text) -> bytes:
    """Join rows that each end with a comma to the elements of a JSON array; no row is null."""
    if not len(rows):
        return b""
    offsets = np.frombuffer(rows.buffers()[1], np.int64)[rows.offset :]
    return bytes(memoryview(rows.buffers()[2])[offsets[0] : offsets[len(rows)] - 1])


def member(name: str, values: Text) -> Text | str:
    """A member of a JSON object, with a comma before it; an empty string in rows without a value."""
    if values.null_count == len(values):
        return ""
    return pc.fill_null(row_texts(f',"{name}":', values), "")


def numbers(column: pa.Array) -> Text:
    """Integers."""
    return column.cast(_TEXT)


def strings(column: pa.Array) -> Text:
    """Strings. Raises ``ValueError`` for invalid UTF-8."""
    if column.null_count == len(column):
        return pa.nulls(len(column), _TEXT)
    column = column.cast(_TEXT)
    column.validate(full=True)
    offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset :]
    data = np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[len(column)]]
    if not ((data < ord(" ")).any() or (data == ord('"')).any() or (data == ord("\\")).any()):
        return row_texts('"', column, '"')
    return texts(column, str)


def texts(column: pa.Array, written: Callable[[Any], Any]) -> Text:
    """Values of any type: each distinct one, in the format's internal form, as a function writes it.

    The result is null where the column is null, and where the function returns None.
    """
    kind = column.type
    if pa.types.is_temporal(kind) or pa.types.is_floating(kind):  # 0.0 equals -0.0
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    found = column.dictionary_encode()
    distinct = found.dictionary.view(kind) if pa.types.is_floating(kind) else found.dictionary
    values = [written(value) for value in distinct.to_pylist()]
    made = [None if value is None else msgspec.json.encode(value).decode() for value in values]
    return pa.array(made, _TEXT).take(found.indices)


def arrays(lengths: npt.NDArray[np.integer[Any]], values: Text) -> Text:
    """Encode JSON arrays: each takes as many of the values as its length, in order."""
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), pc.fill_null(values, "null"))
    return row_texts("[", pc.binary_join(lists, pa.scalar(",", _TEXT)), "]")


def number_arrays(column: pa.ListArray) -> Text:
    """Lists of integers as JSON arrays; null for null lists."""
    if column.null_count == len(column):
        return pa.nulls(len(column), _TEXT)
    counts = np.asarray(pc.fill_null(pc.list_value_length(column), 0))
    written = arrays(counts, numbers(column.flatten()))
    return pc.if_else(column.is_valid(), written, pa.scalar(None, _TEXT)) if column.null_count else written


def joined(columns: Sequence[pa.Array]) -> pa.Array:
    """Concatenate columns of the same type."""
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)

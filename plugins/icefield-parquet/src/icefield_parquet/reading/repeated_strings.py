"""Repeated strings are read as dictionaries, with each value once, and expanded afterwards.

pyarrow takes half the time for both steps that it takes to read the same strings one by one. A dictionary also shows
the memory that its strings need before it is allocated: a page of thirty bytes can repeat a string of a megabyte a
million times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from icefield.toolkit import list_parts, validity_buffer

from icefield_parquet.guard.expansion import TooMany
from icefield_parquet.guard.repeated_entries import MOST_BYTES
from icefield_parquet.schema import Leaf

_FEWEST: Final = 1 << 15
"""Values of a row group for which a dictionary of its own is worth while."""

_BYTES_A_VALUE: Final = 3
"""The most bytes for a value that is an index into a dictionary; a plain string takes four for its length alone."""

_MOST_BYTES: Final = 128 << 20
"""Strings of a column, or of a batch of rows, that are spelled out at once."""


def repeated_strings(runs: Sequence[Sequence[Any]], schema: pa.Schema, columns: Sequence[Sequence[Leaf]]) -> list[int]:
    """The column chunks, by their place in each row group, whose strings or bytes the row groups repeat.

    ``runs`` are the row groups that are decoded together; ``columns`` the leaves of each field of the schema.
    """
    groups = [group for run in runs for group in run]
    alone = all(len(run) == 1 for run in runs)
    found = []
    for field, inside in zip(schema, columns, strict=True):
        # pyarrow cannot concatenate lists with different dictionaries.
        if (alone or not field.type.num_fields) and _can_be_spelled_out(field.type):
            found += [
                leaf.index for leaf in inside if _is_string_like(leaf.field.type) and _repeats(groups, leaf.index)
            ]
    return found


def _is_string_like(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


@lru_cache(maxsize=512)
def _can_be_spelled_out(kind: pa.DataType) -> bool:
    """Whether a type has neither dictionaries of its own nor lists of a rare kind."""
    if not kind.num_fields:
        return not pa.types.is_dictionary(kind)
    usual = pa.types.is_struct(kind) or pa.types.is_map(kind) or pa.types.is_list(kind)
    return usual and all(_can_be_spelled_out(kind.field(place).type) for place in range(kind.num_fields))


def _repeats(groups: Sequence[Any], index: int) -> bool:
    size = values = 0
    for group in groups:
        chunk = group.column(index)
        if chunk.num_values < _FEWEST or not chunk.has_dictionary_page:
            return False
        size, values = size + chunk.total_uncompressed_size, values + chunk.num_values
    return values > 0 and size <= values * _BYTES_A_VALUE


def without_dictionaries(column: pa.ChunkedArray, kept: pa.DataType) -> list[pa.Array] | None:
    """Return a column's chunks without the dictionaries that ``kept`` lacks; None where they need much memory."""
    chunks: list[pa.Array] = column.chunks
    if not _has_dictionaries(column.type) or _has_dictionaries(kept):
        return chunks
    return None if sum(map(_bytes, chunks)) > _MOST_BYTES else list(map(_spelled_out, chunks))


def spelled_out(batch: pa.RecordBatch, kept: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Expand the dictionaries that ``kept`` lacks in a batch; in pieces where its strings need much memory."""
    places = [
        place
        for place, (held, wanted) in enumerate(zip(batch.schema, kept, strict=True))
        if _has_dictionaries(held.type) and not _has_dictionaries(wanted.type)
    ]
    size = sum(_bytes(batch.column(place)) for place in places)
    if not places:
        yield batch
    elif batch.num_rows > 1 and size > _MOST_BYTES:
        half = batch.num_rows // 2
        yield from spelled_out(batch.slice(0, half), kept)
        yield from spelled_out(batch.slice(half), kept)
    elif batch.num_rows == 1 and size > MOST_BYTES:
        raise TooMany(f"a row whose lists repeat strings to {size} bytes, where {MOST_BYTES} are the most")
    else:
        columns = batch.columns
        for place in places:
            columns[place] = _spelled_out(columns[place])
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


@lru_cache(maxsize=512)
def _has_dictionaries(kind: pa.DataType) -> bool:
    inside = (kind.field(place).type for place in range(kind.num_fields))
    return pa.types.is_dictionary(kind) or any(map(_has_dictionaries, inside))


def dictionary_arrays(array: pa.Array) -> list[pa.DictionaryArray]:
    """Return the dictionary arrays in an array, at any depth."""
    if pa.types.is_dictionary(array.type):
        return [array]
    inside = _children(array)[0] if _has_dictionaries(array.type) else []
    return [found for child in inside for found in dictionary_arrays(child)]


def _bytes(array: pa.Array) -> int:
    """Return the size of an array's dictionary strings when they are spelled out."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _text_bytes(array)
    if not _has_dictionaries(kind):
        return 0
    return sum(map(_bytes, _children(array)[0]))


def _text_bytes(array: pa.DictionaryArray) -> int:
    lengths = pc.binary_length(array.dictionary)
    most = pc.max(lengths).as_py() or 0
    if most * len(array) <= _MOST_BYTES:
        return int(most * len(array))
    return pc.sum(lengths.take(array.indices)).as_py() or 0


def _spelled_out(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return pc.take(array.dictionary, array.indices, boundscheck=False)  # `check_values` has looked
    if not _has_dictionaries(kind):
        return array
    children, buffers = _children(array)
    children = [_spelled_out(child) for child in children]
    if pa.types.is_struct(kind):
        fields = [kind.field(place).with_type(child.type) for place, child in enumerate(children)]
        return pa.Array.from_buffers(pa.struct(fields), len(array), buffers, array.null_count, children=children)
    if pa.types.is_map(kind):
        made = pa.map_(kind.key_field.with_type(children[0].type), kind.item_field.with_type(children[1].type))
        children = [pa.StructArray.from_arrays(children, fields=[made.key_field, made.item_field])]
    else:
        made = pa.list_(kind.value_field.with_type(children[0].type))
    return pa.Array.from_buffers(made, len(array), buffers, array.null_count, children=children)


def _children(array: pa.Array) -> tuple[list[pa.Array], list[pa.Buffer | None]]:
    """Return the children of a struct, list or map, cut to its rows, and its own buffers."""
    if pa.types.is_struct(array.type):
        return [array.field(place) for place in range(array.type.num_fields)], [validity_buffer(array)]
    validity, offsets, start, stop = list_parts(array)
    held = [array.keys, array.items] if pa.types.is_map(array.type) else [array.values]
    return [each.slice(start, stop - start) for each in held], [validity, offsets]

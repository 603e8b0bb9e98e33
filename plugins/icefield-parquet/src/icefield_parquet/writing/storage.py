"""Arrow data in the form that a file stores: uuids annotated, columns of unknown type left out, variants shredded."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from icefield.errors import InvalidArgument
from icefield.schema import Schema
from icefield.toolkit import retype
from icefield.types import IcebergType, ListType, MapType, NestedField, StructType, UnknownType, VariantType

from icefield_parquet.variants.shredded_types import is_shredded
from icefield_parquet.variants.shredding import shredded

_AT_ONCE: Final = 2 << 20
"""The bytes of variants that are shredded at once; shredding needs several times as much memory."""

_ONE_ARRAY: Final = 1 << 30


def to_storage(table: pa.Table, schema: Schema, storage: pa.Schema) -> pa.Table:
    """The table under the storage schema (see ``icefield_parquet.schema.storage_schema``).

    No value is copied but for variants that are shredded. Raises ``InvalidArgument`` for damaged ones, with the column.
    """
    if table.schema.equals(storage, check_metadata=True):
        return table
    kept = _kept(schema.fields, storage)
    columns = []
    for position, field in zip(kept, storage, strict=True):
        try:
            columns.append(_chunked(table.column(position), schema.fields[position].field_type, field.type))
        except InvalidArgument as error:
            raise InvalidArgument(f"column '{field.name}': {error}") from error
    return pa.Table.from_arrays(columns, schema=storage)


def _kept(fields: tuple[NestedField, ...], stored: pa.Schema | list[pa.Field]) -> list[int]:
    """The positions of the fields that are stored."""
    if len(stored) == len(fields):
        return list(range(len(fields)))
    return [position for position, field in enumerate(fields) if not isinstance(field.field_type, UnknownType)]


def _chunked(column: pa.ChunkedArray, kind: IcebergType, wanted: pa.DataType) -> pa.ChunkedArray:
    if column.type.equals(wanted, check_metadata=True):
        return column
    if not _shreds(kind, wanted):
        return pa.chunked_array([_array(chunk, kind, wanted) for chunk in column.chunks], wanted)
    pieces = []
    # Small chunks cost as much as large ones, but 32-bit offsets limit the size of a concatenated array.
    for chunk in [pa.concat_arrays(column.chunks)] if column.nbytes < _ONE_ARRAY else column.chunks:
        rows = max(1, len(chunk) * _AT_ONCE // max(1, chunk.nbytes))
        pieces += [_array(chunk.slice(at, rows), kind, wanted) for at in range(0, len(chunk), rows)]
    return pa.chunked_array(pieces, wanted)


def _shreds(kind: IcebergType, wanted: pa.DataType) -> bool:
    """Whether a variant somewhere inside is shredded."""
    if isinstance(kind, StructType):
        stored = [wanted.field(position) for position in range(wanted.num_fields)]
        kept = _kept(kind.fields, stored)
        return any(_shreds(kind.fields[at].field_type, field.type) for at, field in zip(kept, stored, strict=True))
    return isinstance(kind, VariantType) and is_shredded(wanted)


def _array(array: pa.Array, kind: IcebergType, wanted: pa.DataType, absent: Any = None) -> pa.Array:
    """An array in its storage form; ``absent`` states the rows that are below a null, if there are any."""
    if isinstance(kind, VariantType) and is_shredded(wanted):
        return shredded(array, wanted, absent)
    if not _differs(kind, wanted):
        return retype(array, wanted)
    if isinstance(kind, StructType):
        stored = [wanted.field(position) for position in range(wanted.num_fields)]
        kept = _kept(kind.fields, stored)
        if array.null_count:
            null = array.is_null().to_numpy(zero_copy_only=False)
            absent = null if absent is None else null | absent
        children = [
            _array(array.field(at), kind.fields[at].field_type, field.type, absent)
            for at, field in zip(kept, stored, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=stored, mask=array.is_null() if array.null_count else None)
    offset, buffers = array.offset, array.buffers()[:2]
    if isinstance(kind, ListType):
        values = _array(array.values, kind.element.field_type, wanted.value_type)
        return pa.Array.from_buffers(wanted, len(array), buffers, offset=offset, children=[values])
    assert isinstance(kind, MapType)
    keys = _array(array.keys, kind.key.field_type, wanted.key_type)
    items = _array(array.items, kind.value.field_type, wanted.item_type)
    entries = pa.StructArray.from_arrays([keys, items], fields=[wanted.key_field, wanted.item_field])
    return pa.Array.from_buffers(wanted, len(array), buffers, offset=offset, children=[entries])


def _differs(kind: IcebergType, wanted: pa.DataType) -> bool:
    """Whether the storage type leaves out a field somewhere inside, or a variant is shredded there."""
    if isinstance(kind, StructType):
        stored = [wanted.field(position) for position in range(wanted.num_fields)]
        if len(stored) != len(kind.fields):
            return True
        return any(_differs(child.field_type, field.type) for child, field in zip(kind.fields, stored, strict=True))
    if isinstance(kind, VariantType):
        return is_shredded(wanted)
    if isinstance(kind, ListType):
        return _differs(kind.element.field_type, wanted.value_type)
    if isinstance(kind, MapType):
        return _differs(kind.key.field_type, wanted.key_type) or _differs(kind.value.field_type, wanted.item_type)
    return False

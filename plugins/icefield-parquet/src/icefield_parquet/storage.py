"""Arrow data in the form that a file stores: uuids annotated, columns of unknown type left out."""

from __future__ import annotations

import pyarrow as pa
from icefield.arrow_arrays import retype
from icefield.schema import Schema
from icefield.types import IcebergType, ListType, MapType, NestedField, StructType, UnknownType


def to_storage(table: pa.Table, schema: Schema, storage: pa.Schema) -> pa.Table:
    """The table under the storage schema (see ``icefield_parquet.schema.storage_schema``). No value is copied."""
    kept = _kept(schema.fields, list(storage))
    columns = [
        _chunked(table.column(position), schema.fields[position].field_type, field.type)
        for position, field in zip(kept, storage, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=storage)


def _kept(fields: tuple[NestedField, ...], stored: list[pa.Field]) -> list[int]:
    """The positions of the fields that are stored."""
    if len(stored) == len(fields):
        return list(range(len(fields)))
    return [position for position, field in enumerate(fields) if not isinstance(field.field_type, UnknownType)]


def _chunked(column: pa.ChunkedArray, kind: IcebergType, wanted: pa.DataType) -> pa.ChunkedArray:
    if column.type.equals(wanted, check_metadata=True):
        return column
    return pa.chunked_array([_array(chunk, kind, wanted) for chunk in column.chunks], wanted)


def _array(array: pa.Array, kind: IcebergType, wanted: pa.DataType) -> pa.Array:
    if not _lacks_fields(kind, wanted):
        return retype(array, wanted)
    if isinstance(kind, StructType):
        stored = [wanted.field(position) for position in range(wanted.num_fields)]
        kept = _kept(kind.fields, stored)
        children = [
            _array(array.field(at), kind.fields[at].field_type, field.type)
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


def _lacks_fields(kind: IcebergType, wanted: pa.DataType) -> bool:
    """Whether the storage type leaves out a field somewhere inside."""
    if isinstance(kind, StructType):
        stored = [wanted.field(position) for position in range(wanted.num_fields)]
        if len(stored) != len(kind.fields):
            return True
        return any(
            _lacks_fields(child.field_type, field.type) for child, field in zip(kind.fields, stored, strict=True)
        )
    if isinstance(kind, ListType):
        return _lacks_fields(kind.element.field_type, wanted.value_type)
    if isinstance(kind, MapType):
        return _lacks_fields(kind.key.field_type, wanted.key_type) or _lacks_fields(
            kind.value.field_type, wanted.item_type
        )
    return False

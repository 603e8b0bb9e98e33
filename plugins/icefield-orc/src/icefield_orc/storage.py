"""Conversion of Arrow data to ORC's types, with attributes at every level for types that ORC lacks.

| type | stored as | attributes besides ``iceberg.id`` and ``iceberg.required`` |
|---|---|---|
| time | long | ``iceberg.long-type`` = TIME |
| timestamp, timestamptz | timestamp, instant | ``iceberg.timestamp-unit`` = MICROS or NANOS |
| uuid | binary | ``iceberg.binary-type`` = UUID |
| fixed(L) | binary | ``iceberg.binary-type`` = FIXED, ``iceberg.length`` = L |
| geometry, geography | binary | ``iceberg.binary-type`` = GEOMETRY, GEOGRAPHY |
| variant | struct of two binaries without ids | ``iceberg.struct-type`` = VARIANT |
| unknown | not at all | |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from icefield.errors import UnsupportedFeature
from icefield.schema import Schema
from icefield.toolkit import child_fields, retype, to_arrow_type
from icefield.types import (
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)

from icefield_orc.schema import BINARY_TYPE, ID, LENGTH, LONG_TYPE, REQUIRED, STRUCT_TYPE, TIMESTAMP_UNIT

_ATTRIBUTES: dict[type[IcebergType], dict[str, str]] = {
    TimeType: {LONG_TYPE: "TIME"},
    TimestampType: {TIMESTAMP_UNIT: "MICROS"},
    TimestamptzType: {TIMESTAMP_UNIT: "MICROS"},
    TimestampNanoType: {TIMESTAMP_UNIT: "NANOS"},
    TimestamptzNanoType: {TIMESTAMP_UNIT: "NANOS"},
    UUIDType: {BINARY_TYPE: "UUID"},
    GeometryType: {BINARY_TYPE: "GEOMETRY"},
    GeographyType: {BINARY_TYPE: "GEOGRAPHY"},
    VariantType: {STRUCT_TYPE: "VARIANT"},
}


def storage_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema that a file of ``schema`` is written with; field metadata become type attributes.

    Raises ``UnsupportedFeature`` for a column of unknown type that is the only one, and so cannot be left out.
    """
    return pa.schema(_stored_fields(schema.fields, "the table"))


def storage_batch(batch: pa.RecordBatch, schema: Schema, storage: pa.Schema) -> pa.Table:
    """A batch under its storage schema. Only nested columns that are slices are copied."""
    columns = [pa.concat_arrays([column, column.slice(0, 0)]) if _is_sliced(column) else column for column in batch]
    arrays = _stored_arrays(columns, schema.fields, list(storage))
    return pa.Table.from_arrays(arrays, schema=storage)


def types_of(fields: Iterable[pa.Field]) -> Iterator[pa.Field]:
    """Iterate over the types of a file in the order of their numbers, pre-order, without the root."""
    for field in fields:
        yield field
        yield from types_of(child_fields(field.type))


def column_ids(storage: pa.Schema) -> str | None:
    """The ids of all types in pre-order, as older readers look for them; None where some have none."""
    found = [_id_of(field) for field in types_of(storage)]
    return None if None in found else ",".join(id_ for id_ in found if id_ is not None)


def column_numbers(schema: Schema, storage: pa.Schema) -> dict[str, int]:
    """The file's number for every primitive column, by the full name that properties use."""
    by_id = {_id_of(field): number for number, field in enumerate(types_of(storage), start=1)}
    names = ((schema.find_column_name(id_), id_) for id_ in schema.field_ids)
    return {name: by_id[str(id_)] for name, id_ in names if name is not None and str(id_) in by_id}


def _id_of(field: pa.Field) -> str | None:
    stated = (field.metadata or {}).get(ID.encode())
    return None if stated is None else stated.decode()


def _is_stored(field: NestedField) -> bool:
    return not isinstance(field.field_type, UnknownType)


def _stored_fields(fields: Sequence[NestedField], owner: str) -> list[pa.Field]:
    stored = [_stored_field(field) for field in fields if _is_stored(field)]
    if fields and not stored:
        raise UnsupportedFeature(f"{owner} has fields of unknown type alone, of which ORC can hold nothing")
    return stored


def _stored_field(field: NestedField) -> pa.Field:
    kind = field.field_type
    attributes = {ID: str(field.field_id), REQUIRED: "true" if field.required else "false"}
    attributes |= _ATTRIBUTES.get(type(kind), {})
    if isinstance(kind, FixedType):
        attributes |= {BINARY_TYPE: "FIXED", LENGTH: str(kind.length)}
    return pa.field(field.name, _stored_type(field), metadata=attributes)


def _stored_type(field: NestedField) -> pa.DataType:
    kind = field.field_type
    if isinstance(kind, StructType):
        return pa.struct(_stored_fields(kind.fields, f"column '{field.name}'"))
    if isinstance(kind, ListType):
        return pa.list_(*_stored_fields([kind.element], f"column '{field.name}'"))
    if isinstance(kind, MapType):
        key, value = (_stored_fields([side], f"column '{field.name}'")[0] for side in (kind.key, kind.value))
        return pa.map_(key.with_nullable(False), value)
    if isinstance(kind, TimeType):
        return pa.int64()
    if isinstance(kind, VariantType):
        return pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    return to_arrow_type(kind)


def _stored_arrays(arrays: Sequence[pa.Array], fields: Sequence[NestedField], stored: list[pa.Field]) -> list[pa.Array]:
    kept = [(array, field) for array, field in zip(arrays, fields, strict=True) if _is_stored(field)]
    return [
        _stored_array(array, field.field_type, wanted.type) for (array, field), wanted in zip(kept, stored, strict=True)
    ]


def _stored_array(array: pa.Array, kind: IcebergType, wanted: pa.DataType) -> pa.Array:
    if isinstance(kind, StructType | VariantType):
        fields = [wanted.field(at) for at in range(wanted.num_fields)]
        # pyarrow's writer garbles structs with values below a null: the nulls have to be in the fields as well.
        children = array.flatten() if array.null_count else [array.field(at) for at in range(array.type.num_fields)]
        made = children if isinstance(kind, VariantType) else _stored_arrays(children, kind.fields, fields)
        return pa.StructArray.from_arrays(made, fields=fields, mask=array.is_null() if array.null_count else None)
    if isinstance(kind, ListType):
        values = _stored_array(array.values, kind.element_type, wanted.value_type)
        return _over(array, wanted, values)
    if isinstance(kind, MapType):
        keys = _stored_array(array.keys, kind.key_type, wanted.key_type)
        items = _stored_array(array.items, kind.value_type, wanted.item_type)
        entries = pa.StructArray.from_arrays([keys, items], fields=[wanted.key_field, wanted.item_field])
        return _over(array, wanted, entries)
    return retype(array, wanted)


def _is_sliced(array: pa.Array) -> bool:
    """Whether a nested array, or anything in it, does not begin at its buffers' start.

    The writer of pyarrow would then take the values of structs from the wrong positions.
    """
    kind = array.type
    if pa.types.is_struct(kind):
        children = [array.field(at) for at in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        children = [array.keys, array.items]
    elif pa.types.is_list(kind):
        children = [array.values]
    else:
        return False
    return array.offset != 0 or any(child.offset != 0 or _is_sliced(child) for child in children)


def _over(array: pa.Array, wanted: pa.DataType, values: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(wanted, len(array), array.buffers()[:2], array.null_count, array.offset, [values])

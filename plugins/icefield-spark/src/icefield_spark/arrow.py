"""Arrow batches as Spark takes them, and as Icefield's writers do.

A batch must have exactly the types of Spark's schema, so every column that Spark spells otherwise is converted here, at
any depth, a whole array at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import Schema
from icefield import types as iceberg
from icefield.arrow_pruning import prune_array
from icefield.arrow_types import to_arrow_type

Convert = Callable[[pa.Array, iceberg.IcebergType], pa.Array]
_UUID_DASHES = (8, 13, 18, 23)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


class SparkBatches:
    """Turns batches of one schema (columns by position) into what Spark has for them, nullability included."""

    def __init__(self, schema: Schema) -> None:
        self._kinds = [field.field_type for field in schema.fields]
        self.schema = pa.schema([_spark_field(field) for field in schema.fields])

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """One batch."""
        columns = []
        for column, kind, field in zip(batch.columns, self._kinds, self.schema, strict=True):
            columns.append(prune_array(_convert(column, kind, _leaf_to_spark), field.type, field.name))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _spark_field(field: iceberg.NestedField, name: str | None = None) -> pa.Field:
    return pa.field(name or field.name, _spark_type(field.field_type), nullable=not field.required)


def _spark_type(kind: iceberg.IcebergType) -> pa.DataType:
    if isinstance(kind, iceberg.StructType):
        return pa.struct([_spark_field(field) for field in kind.fields])
    if isinstance(kind, iceberg.ListType):
        return pa.list_(_spark_field(kind.element, "element"))
    if isinstance(kind, iceberg.MapType):
        return pa.map_(_spark_field(kind.key, "key"), _spark_field(kind.value, "value"))
    if isinstance(kind, iceberg.UUIDType):
        return pa.string()
    if isinstance(kind, iceberg.FixedType):
        return pa.binary()
    if isinstance(kind, iceberg.TimeType):
        return pa.time64("ns")
    if isinstance(kind, iceberg.TimestampNanoType | iceberg.TimestamptzNanoType):
        return pa.int64()
    return to_arrow_type(kind)


def from_spark_batch(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """A batch from Spark with the columns that ``schema`` knows by name in Icefield's types; others stay as they are."""
    known = {field.name: field.field_type for field in schema.fields}
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        columns.append(_convert(column, known[name], _leaf_from_spark) if name in known else column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _convert(array: pa.Array, kind: iceberg.IcebergType, leaf: Convert) -> pa.Array:
    if not kind.is_nested:
        return leaf(array, kind)
    if isinstance(kind, iceberg.StructType) and pa.types.is_struct(array.type):
        return _convert_struct(array, kind, leaf)
    if isinstance(kind, iceberg.ListType) and pa.types.is_list(array.type):
        values = _convert(array.values, kind.element.field_type, leaf)
        return pa.ListArray.from_arrays(_offsets(array), values, mask=_mask(array))
    if isinstance(kind, iceberg.MapType) and pa.types.is_map(array.type):
        keys = _convert(array.keys, kind.key.field_type, leaf)
        items = _convert(array.items, kind.value.field_type, leaf)
        return pa.MapArray.from_arrays(_offsets(array), keys, items, mask=_mask(array))
    return array


def _convert_struct(array: pa.StructArray, kind: iceberg.StructType, leaf: Convert) -> pa.StructArray:
    known = {field.name: field.field_type for field in kind.fields}
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    children = [array.field(i) for i in range(len(names))]
    made = [
        _convert(child, known[name], leaf) if name in known else child
        for name, child in zip(names, children, strict=True)
    ]
    return pa.StructArray.from_arrays(made, names=names, mask=_mask(array))


def _offsets(array: pa.Array) -> pa.Array:
    """The offsets of an array that may be a slice, in a buffer of their own: Arrow refuses a mask beside a slice."""
    return pa.array(array.offsets.to_numpy(), pa.int32()) if array.offset else array.offsets


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _leaf_to_spark(array: pa.Array, kind: iceberg.IcebergType) -> pa.Array:
    if isinstance(kind, iceberg.UUIDType):
        return _uuid_text(array)
    if isinstance(kind, iceberg.FixedType):
        return array.cast(pa.binary())
    if isinstance(kind, iceberg.TimeType):
        return array.cast(pa.time64("ns"))
    if isinstance(kind, iceberg.TimestampNanoType | iceberg.TimestamptzNanoType):
        return array.cast(pa.int64())
    return array


def _leaf_from_spark(array: pa.Array, kind: iceberg.IcebergType) -> pa.Array:
    if isinstance(kind, iceberg.UUIDType) and (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return _uuid_bytes(array)
    if isinstance(kind, iceberg.FixedType):
        return array.cast(pa.binary(kind.length))
    if isinstance(kind, iceberg.TimeType):
        return array.cast(pa.time64("us"))
    if isinstance(kind, iceberg.TimestamptzType) and pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", "UTC"))
    if isinstance(kind, iceberg.TimestampNanoType) and pa.types.is_int64(array.type):
        return array.cast(pa.timestamp("ns"))
    if isinstance(kind, iceberg.TimestamptzNanoType) and pa.types.is_int64(array.type):
        return array.cast(pa.timestamp("ns", "UTC"))
    return array


def _uuid_text(array: pa.Array) -> pa.Array:
    """Sixteen bytes as 36 characters, a whole column at a time."""
    whole = pc.fill_null(array, b"\0" * 16)
    data = np.frombuffer(whole.buffers()[1], np.uint8, len(whole) * 16, whole.offset * 16).reshape(-1, 16)
    text = np.full((len(whole), 36), ord("-"), np.uint8)
    places = [i for i in range(36) if i not in _UUID_DASHES]
    text[:, places[0::2]] = _HEX[data >> 4]
    text[:, places[1::2]] = _HEX[data & 15]
    offsets = np.arange(0, 36 * (len(whole) + 1), 36, dtype=np.int32)
    made = pa.StringArray.from_buffers(len(whole), pa.py_buffer(offsets), pa.py_buffer(text))
    return pc.if_else(array.is_null(), None, made) if array.null_count else made


def _uuid_bytes(array: pa.Array) -> pa.Array:
    """Texts of UUIDs as sixteen bytes; raises ``ValueError`` for one that is none."""
    bare = pc.replace_substring(pc.ascii_lower(array.cast(pa.string())), "-", "")
    if not pc.all(pc.match_substring_regex(bare, "^[0-9a-f]{32}$"), skip_nulls=True).as_py():
        raise ValueError("a value of a uuid column is not the text of a UUID")
    whole = pc.fill_null(bare, "0" * 32).cast(pa.binary()).cast(pa.binary(32))
    digits = np.frombuffer(whole.buffers()[1], np.uint8, len(whole) * 32, whole.offset * 32)
    nibbles = np.where(digits >= ord("a"), digits - ord("a") + 10, digits - ord("0")).astype(np.uint8).reshape(-1, 32)
    data = (nibbles[:, 0::2] << 4) | nibbles[:, 1::2]
    made = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), len(whole), [None, pa.py_buffer(np.ascontiguousarray(data))]
    )
    return pc.if_else(array.is_null(), None, made) if array.null_count else made

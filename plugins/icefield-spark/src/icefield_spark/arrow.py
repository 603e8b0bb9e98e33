"""Arrow batches as Spark takes them, and as Icefield's writers do.

A batch must have exactly the types of Spark's schema, so every column that Spark spells otherwise is converted here, at
any depth, a whole array at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import Schema
from icefield import types as iceberg
from icefield.errors import InvalidArgument
from icefield.toolkit import VARIANT_ARROW
from pyspark.sql import types as spark

from icefield_spark.pruning import prune_array
from icefield_spark.types import TIME, VARIANT

_AT_ONCE: Final = 8192
"""Rows per batch sent to Spark. The JVM turns the columns of a batch into rows: see docs/internals/spark.md."""

Convert = Callable[[pa.Array, iceberg.IcebergType], pa.Array]
_UUID_DASHES = (8, 13, 18, 23)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_NANOS = (iceberg.TimestampNanoType, iceberg.TimestamptzNanoType)
_SPELT_OTHERWISE = (iceberg.UUIDType, iceberg.FixedType, iceberg.TimeType, *_NANOS)

_ARROW: dict[type[spark.DataType], pa.DataType] = {
    spark.NullType: pa.null(),
    spark.BooleanType: pa.bool_(),
    spark.ByteType: pa.int8(),
    spark.ShortType: pa.int16(),
    spark.IntegerType: pa.int32(),
    spark.LongType: pa.int64(),
    spark.FloatType: pa.float32(),
    spark.DoubleType: pa.float64(),
    spark.DateType: pa.date32(),
    spark.TimestampType: pa.timestamp("us", "UTC"),
    spark.TimestampNTZType: pa.timestamp("us"),
    spark.BinaryType: pa.binary(),
}
if TIME is not None:
    _ARROW[TIME] = pa.time64("ns")
if VARIANT is not None:
    # Spark recognises a variant by a mark in the metadata of its field ``metadata``.
    _ARROW[VARIANT] = pa.struct(
        [
            pa.field("value", pa.binary(), nullable=False),
            pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
        ]
    )


def spark_arrow_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema in which Spark takes and gives rows of its schema."""
    return pa.schema([_spark_field(field.name, field.dataType, field.nullable) for field in schema.fields])


class SparkBatches:
    """Converts batches of a scan's columns to the order, types and nullability that Spark expects.

    ``target`` holds the columns of ``schema`` in any order, with all or some of the children of nested ones.
    """

    def __init__(self, schema: Schema, target: spark.StructType) -> None:
        self.schema = spark_arrow_schema(target)
        places = {field.name: place for place, field in enumerate(schema.fields)}
        self._places = [places[name] for name in self.schema.names]
        self._kinds = [schema.fields[place].field_type for place in self._places]

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """One batch."""
        columns = []
        for place, kind, field in zip(self._places, self._kinds, self.schema, strict=True):
            column = batch.column(place)
            if _is_spelt_otherwise(kind):
                column = _convert(column, kind, leaf_to_spark)
            columns.append(prune_array(column, field.type, field.name))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def in_pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slice a batch into batches of the size that is fastest for Spark; nothing is copied."""
    for start in range(0, batch.num_rows, _AT_ONCE):
        yield batch.slice(start, _AT_ONCE)


def from_spark_batch(batch: pa.RecordBatch, schema: Schema, *, case_sensitive: bool = True) -> pa.RecordBatch:
    """A batch from Spark with the columns of ``schema``, found by name, in Icefield's types; others stay unchanged.

    Without ``case_sensitive``, a column gets the schema's spelling of its name. Raises ``InvalidArgument`` for a value
    that the column cannot hold.
    """
    known = {field.name: field.field_type for field in schema.fields}
    names = spelt_as(known, batch.schema.names, case_sensitive)
    columns = []
    for name, column in zip(names, batch.columns, strict=True):
        kind = known.get(name)
        if kind is not None:
            try:
                column = _convert(column, kind, leaf_from_spark, case_sensitive)
            except (pa.ArrowException, ValueError) as error:
                message = f"column '{name}' cannot be written: a value does not fit {kind}: {error}"
                raise InvalidArgument(message, column=name) from error
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=names)


def spelt_as(known: Iterable[str], names: Iterable[str], case_sensitive: bool) -> list[str]:
    """Names as the table spells them; a name that fits no column, or several, stays unchanged."""
    if case_sensitive:
        return list(names)
    found: dict[str, list[str]] = {}
    for name in known:
        found.setdefault(name.lower(), []).append(name)
    alike = ((name, found.get(name.lower(), [])) for name in names)
    return [name if name in others or len(others) != 1 else others[0] for name, others in alike]


def _spark_field(name: str, kind: spark.DataType, nullable: bool) -> pa.Field:
    # A void field is always nullable, even if Spark says otherwise: the elements of ``array()`` are NOT NULL void.
    return pa.field(name, _spark_type(kind), nullable=nullable or isinstance(kind, spark.NullType))


def _spark_type(kind: spark.DataType) -> pa.DataType:
    if isinstance(kind, spark.StructType):
        return pa.struct([_spark_field(field.name, field.dataType, field.nullable) for field in kind.fields])
    if isinstance(kind, spark.ArrayType):
        return pa.list_(_spark_field("element", kind.elementType, kind.containsNull))
    if isinstance(kind, spark.MapType):
        value = _spark_field("value", kind.valueType, kind.valueContainsNull)
        return pa.map_(_spark_field("key", kind.keyType, False), value)
    if isinstance(kind, spark.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, spark.StringType | spark.CharType | spark.VarcharType):
        return pa.string()
    found = _ARROW.get(type(kind))
    if found is None:
        raise InvalidArgument(f"Iceberg has no type for Spark's {kind.simpleString()}; cast it first")
    return found


def _is_spelt_otherwise(kind: iceberg.IcebergType) -> bool:
    if isinstance(kind, iceberg.StructType | iceberg.ListType | iceberg.MapType):
        return any(_is_spelt_otherwise(child.field_type) for child in kind.children)
    return isinstance(kind, _SPELT_OTHERWISE)


def _convert(array: pa.Array, kind: iceberg.IcebergType, leaf: Convert, case_sensitive: bool = True) -> pa.Array:
    if not kind.is_nested:
        return leaf(array, kind)
    if isinstance(kind, iceberg.StructType) and pa.types.is_struct(array.type):
        return _convert_struct(array, kind, leaf, case_sensitive)
    if isinstance(kind, iceberg.ListType) and pa.types.is_list(array.type):
        values = _convert(array.values, kind.element.field_type, leaf, case_sensitive)
        return pa.ListArray.from_arrays(_offsets(array), values, mask=_mask(array))
    if isinstance(kind, iceberg.MapType) and pa.types.is_map(array.type):
        keys = _convert(array.keys, kind.key.field_type, leaf, case_sensitive)
        items = _convert(array.items, kind.value.field_type, leaf, case_sensitive)
        return pa.MapArray.from_arrays(_offsets(array), keys, items, mask=_mask(array))
    return array


def _convert_struct(
    array: pa.StructArray, kind: iceberg.StructType, leaf: Convert, case_sensitive: bool
) -> pa.StructArray:
    known = {field.name: field.field_type for field in kind.fields}
    names = spelt_as(known, [field.name for field in array.type], case_sensitive)
    children = [array.field(i) for i in range(len(names))]
    if not children:
        return array
    made = [
        _convert(child, known[name], leaf, case_sensitive) if name in known else child
        for name, child in zip(names, children, strict=True)
    ]
    return pa.StructArray.from_arrays(made, names=names, mask=_mask(array))


def _offsets(array: pa.Array) -> pa.Array:
    """The offsets of an array that may be a slice, in a buffer of their own: Arrow refuses a mask next to a slice."""
    return pa.array(array.offsets.to_numpy(), pa.int32()) if array.offset else array.offsets


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def leaf_to_spark(array: pa.Array, kind: iceberg.IcebergType) -> pa.Array:
    """Values of a type without children, as Spark represents them; structs of variants are converted elsewhere."""
    if isinstance(kind, iceberg.UUIDType):
        return _uuid_string(array)
    if isinstance(kind, iceberg.FixedType):
        return array.cast(pa.binary())
    if isinstance(kind, iceberg.TimeType):
        return array.cast(pa.time64("ns"))
    if isinstance(kind, _NANOS):
        return array.cast(pa.int64())
    return array


def leaf_from_spark(array: pa.Array, kind: iceberg.IcebergType) -> pa.Array:
    """Convert values from Spark to the kernel's form, unless the kernel itself casts them."""
    held = array.type
    if isinstance(kind, iceberg.VariantType) and pa.types.is_struct(held):
        return _variant(array)
    if isinstance(kind, iceberg.UUIDType) and (pa.types.is_string(held) or pa.types.is_large_string(held)):
        return _uuid_bytes(array)
    if isinstance(kind, iceberg.FixedType) and (pa.types.is_binary(held) or pa.types.is_large_binary(held)):
        return array.cast(pa.binary(kind.length))
    if isinstance(kind, iceberg.TimeType) and pa.types.is_time64(held):
        return array.cast(pa.time64("us"))
    if isinstance(kind, iceberg.TimestamptzType) and pa.types.is_timestamp(held) and held.tz is not None:
        return array.cast(pa.timestamp("us", "UTC"))
    if isinstance(kind, _NANOS) and pa.types.is_int64(held):
        return array.cast(pa.timestamp("ns", "UTC" if isinstance(kind, iceberg.TimestamptzNanoType) else None))
    return array


def _variant(array: pa.StructArray) -> pa.StructArray:
    """Convert Spark's variants, which put the value first and mark the metadata.

    A struct with other fields stays as it is, and is refused later.
    """
    names = {field.name: field.type for field in array.type}
    if names != {"metadata": pa.binary(), "value": pa.binary()}:
        return array
    children = [array.field(field.name) for field in VARIANT_ARROW]
    if array.null_count:  # Spark gives null bytes in a null variant, and the kernel's are required
        children = [pc.fill_null(child, b"") for child in children]
    return pa.StructArray.from_arrays(children, fields=list(VARIANT_ARROW), mask=_mask(array))


def _uuid_string(array: pa.Array) -> pa.Array:
    """Convert UUIDs of sixteen bytes to 36 characters, a whole column at once."""
    whole = pc.fill_null(array, b"\0" * 16)
    data = np.frombuffer(whole.buffers()[1], np.uint8, len(whole) * 16, whole.offset * 16).reshape(-1, 16)
    string = np.full((len(whole), 36), ord("-"), np.uint8)
    places = [i for i in range(36) if i not in _UUID_DASHES]
    string[:, places[0::2]] = _HEX[data >> 4]
    string[:, places[1::2]] = _HEX[data & 15]
    offsets = np.arange(0, 36 * (len(whole) + 1), 36, dtype=np.int32)
    made = pa.StringArray.from_buffers(len(whole), pa.py_buffer(offsets), pa.py_buffer(string))
    return pc.if_else(array.is_null(), None, made) if array.null_count else made


def _uuid_bytes(array: pa.Array) -> pa.Array:
    """Strings of UUIDs as sixteen bytes; raises ``ValueError`` for a malformed string."""
    bare = pc.replace_substring(pc.ascii_lower(array.cast(pa.string())), "-", "")
    if not pc.all(pc.match_substring_regex(bare, "^[0-9a-f]{32}$"), min_count=0).as_py():
        raise ValueError("not every one is the string of a UUID")
    whole = pc.fill_null(bare, "0" * 32).cast(pa.binary()).cast(pa.binary(32))
    digits = np.frombuffer(whole.buffers()[1], np.uint8, len(whole) * 32, whole.offset * 32)
    nibbles = np.where(digits >= ord("a"), digits - ord("a") + 10, digits - ord("0")).astype(np.uint8).reshape(-1, 32)
    data = (nibbles[:, 0::2] << 4) | nibbles[:, 1::2]
    made = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), len(whole), [None, pa.py_buffer(np.ascontiguousarray(data))]
    )
    return pc.if_else(array.is_null(), None, made) if array.null_count else made

"""Conversion of the arrays that Arrow decodes to the Arrow types of a schema."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield.toolkit import retype, struct_array

from icefield_orc.picking import Pick
from icefield_orc.schema import TIMESTAMPS, TypeKind

_DAY = 86_400_000_000
Convert = Callable[[pa.Array], pa.Array]


def converter(pick: Pick, wanted: pa.DataType) -> Convert:
    """The function that converts a column read by Arrow to an array of ``wanted``.

    It raises ``ValueError`` for values that the type cannot have: bytes of a wrong length, a null in a required field.
    """
    node = pick.node
    if node.opaque:
        return _with_offset if pa.types.is_timestamp(wanted) else _retyped(wanted)
    if node.kind == TypeKind.STRUCT:
        return _structs(pick, wanted)
    if node.kind == TypeKind.LIST:
        return _lists(pick, wanted)
    if node.kind == TypeKind.MAP:
        return _maps(pick, wanted)
    if node.kind in TIMESTAMPS:
        return _timestamps(wanted)
    if pa.types.is_time64(wanted):
        return _times(wanted)
    # Arrow's cast of binary to fixed-size binary makes sure of each length.
    return lambda array: array if array.type == wanted else array.cast(wanted)


def check_nulls(array: pa.Array, field: pa.Field, parent: pa.Array | None = None) -> None:
    """Refuse a null in a required field, unless it is below a null parent."""
    if field.nullable or not array.null_count:
        return
    if parent is None or not parent.null_count or pc.any(pc.and_(pc.is_null(array), pc.is_valid(parent))).as_py():
        raise ValueError(f"a null in the required column '{field.name}'")


def _retyped(wanted: pa.DataType) -> Convert:
    return lambda array: retype(array, wanted)


def _with_offset(array: pa.Array) -> pa.Array:
    """Return the timestamp of a struct of a timestamp and an offset; the timestamp is in UTC at any offset."""
    timestamps = array.flatten()[0]
    return _timestamps(pa.timestamp("us", "UTC"))(timestamps)


def _structs(pick: Pick, wanted: pa.StructType) -> Convert:
    fields = [wanted.field(at) for at in range(wanted.num_fields)]
    inner = [converter(part, field.type) for (_, part), field in zip(pick.parts, fields, strict=True)]
    places = [place for place, _ in pick.parts]

    def convert(array: pa.Array) -> pa.Array:
        # Values below a null struct may be invalid for their type, so they must become null before the conversion.
        held = array.flatten() if array.null_count else [array.field(at) for at in range(array.type.num_fields)]
        children = [make(held[place]) for make, place in zip(inner, places, strict=True)]
        for child, field in zip(children, fields, strict=True):
            check_nulls(child, field, array)
        return struct_array(wanted, children, array)

    return convert


def _lists(pick: Pick, wanted: pa.ListType) -> Convert:
    inner = converter(pick.parts[0][1], wanted.value_type)

    def convert(array: pa.Array) -> pa.Array:
        values = inner(array.values)
        check_nulls(values, wanted.value_field)
        return _over(array, wanted, values)

    return convert


def _maps(pick: Pick, wanted: pa.MapType) -> Convert:
    of_key, of_value = (
        converter(part, side) for (_, part), side in zip(pick.parts, (wanted.key_type, wanted.item_type), strict=True)
    )

    def convert(array: pa.Array) -> pa.Array:
        keys, values = of_key(array.keys), of_value(array.items)
        check_nulls(keys, wanted.key_field)
        check_nulls(values, wanted.item_field)
        entries = pa.StructArray.from_arrays([keys, values], fields=[wanted.key_field, wanted.item_field])
        return _over(array, wanted, entries)

    return convert


def _over(array: pa.Array, wanted: pa.DataType, values: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(wanted, len(array), array.buffers()[:2], array.null_count, array.offset, [values])


def _times(wanted: pa.DataType) -> Convert:
    def convert(array: pa.Array) -> pa.Array:
        micros = array.cast(pa.int64())
        ends = pc.min_max(micros)
        if ends["min"].is_valid and not 0 <= ends["min"].as_py() <= ends["max"].as_py() < _DAY:
            raise ValueError("a time outside of a day")
        return micros.view(wanted)

    return convert


def _timestamps(wanted: pa.TimestampType) -> Convert:
    def convert(array: pa.Array) -> pa.Array:
        if array.type.unit == wanted.unit:
            return array.view(wanted)
        # Arrow's cast rounds towards 1970; a timestamp before that must fall back to the microsecond it is in.
        validity, data = array.buffers()
        nanos = np.frombuffer(data, np.int64, len(array) + array.offset) if data else np.zeros(0, np.int64)
        micros = nanos // 1000
        return pa.Array.from_buffers(
            wanted, len(array), [validity, pa.py_buffer(micros)], array.null_count, array.offset
        )

    return convert

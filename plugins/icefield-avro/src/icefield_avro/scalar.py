"""The scalar decoder, slow and plain. It reads the blocks that the vectorized decoder cannot prove.

It also finds the reason why a file is damaged, and is the reference for the vectorized decoder in tests. A decoder is
a function of the bytes and a position that returns a value and the position after it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa

from icefield_avro.nodes import Array, Map, Primitive, Record
from icefield_avro.scalar_arrays import to_arrow
from icefield_avro.selection import Selection
from icefield_avro.skipping import (
    MAX_EMPTY_ITEMS,
    Budget,
    ItemCount,
    Skip,
    read_branch,
    skip_fixed,
    skip_sized,
    skipper,
)
from icefield_avro.varints import Malformed, Truncated, read_long

Decode = Callable[[bytes, int], tuple[Any, int]]

DAY: Final = 86_400_000_000
"""Microseconds."""

_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_DOUBLE = struct.Struct("<d").unpack_from
_FLOAT = struct.Struct("<f").unpack_from


def decoder(selection: Selection, budget: Budget) -> Decode:
    """A function that gives a value, as ``pyarrow.array`` takes it, and the position after it."""
    inner = _bare_decoder(selection, budget)
    optional = selection.optional
    if optional is None:
        return inner

    def decode(data: bytes, position: int) -> tuple[Any, int]:
        present, position = read_branch(data, position, optional)
        return inner(data, position) if present else (None, position)

    return decode


def _bare_decoder(selection: Selection, budget: Budget) -> Decode:
    node = selection.node
    match node:
        case Record():
            return _decode_record(node, selection, budget)
        case Array():
            return _decode_array(decoder(selection.child(0), budget), ItemCount(node, budget))
        case Map():
            parts = decoder(selection.child(0), budget), decoder(selection.child(1), budget)
            return _decode_map(*parts, selection.keys, ItemCount(node, budget))
    return _decode_primitive(node)


def _decode_primitive(node: Primitive) -> Decode:
    if pa.types.is_decimal(node.arrow):
        return _decode_decimal(node)
    if pa.types.is_time(node.arrow):
        return _decode_time(node.factor)
    match node.wire:
        case "null":
            return lambda data, position: (None, position)
        case "boolean":
            return _decode_boolean
        case "int":
            return _decode_int(node.factor)
        case "long":
            return _decode_scaled(node.factor) if node.factor != 1 else read_long
        case "float":
            return _decode_struct(_FLOAT, 4)
        case "double":
            return _decode_struct(_DOUBLE, 8)
        case "string":
            return _decode_string
        case "enum":
            return _decode_enum(node.symbols)
    skip = skip_fixed(node.size)
    if node.wire == "fixed":
        return lambda data, position: (data[position : (end := skip(data, position))], end)
    return _decode_bytes


def _decode_boolean(data: bytes, position: int) -> tuple[bool, int]:
    if position >= len(data):
        raise Truncated
    byte = data[position]
    if byte > 1:
        raise Malformed(f"a boolean that is {byte}")
    return byte == 1, position + 1


def _decode_int(factor: int) -> Decode:
    def decode(data: bytes, position: int) -> tuple[int, int]:
        value, position = read_long(data, position)
        if not _INT_MIN <= value <= _INT_MAX:
            raise Malformed("an int of more than 32 bits")
        return value * factor, position

    return decode


def _decode_scaled(factor: int) -> Decode:
    def decode(data: bytes, position: int) -> tuple[int, int]:
        value, position = read_long(data, position)
        value *= factor
        if not -(2**63) <= value < 2**63:
            raise Malformed("a time beyond what microseconds in 64 bits hold")
        return value, position

    return decode


def _decode_time(factor: int) -> Decode:
    def decode(data: bytes, position: int) -> tuple[int, int]:
        value, position = read_long(data, position)
        if not 0 <= value * factor < DAY:
            raise Malformed("a time of day beyond midnight")
        return value * factor, position

    return decode


def _decode_struct(unpack: Callable[[bytes, int], tuple[float]], width: int) -> Decode:
    def decode(data: bytes, position: int) -> tuple[float, int]:
        if position + width > len(data):
            raise Truncated
        return unpack(data, position)[0], position + width

    return decode


def _decode_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    end = skip_sized(data, position)
    start = read_long(data, position)[1]
    return data[start:end], end


def _decode_string(data: bytes, position: int) -> tuple[str, int]:
    value, end = _decode_bytes(data, position)
    try:
        return value.decode(), end
    except UnicodeDecodeError:
        raise Malformed("a string that is not UTF-8") from None


def _decode_enum(symbols: tuple[str, ...]) -> Decode:
    def decode(data: bytes, position: int) -> tuple[str, int]:
        index, position = read_long(data, position)
        if not 0 <= index < len(symbols):
            raise Malformed(f"an enum with the symbol {index} of {len(symbols)}")
        return symbols[index], position

    return decode


def _decode_decimal(node: Primitive) -> Decode:
    raw = _decode_bytes if node.wire == "bytes" else None
    skip = skip_fixed(node.size)
    context = Context(prec=100)
    scale, limit = node.arrow.scale, 10**node.arrow.precision

    def decode(data: bytes, position: int) -> tuple[Decimal, int]:
        if raw is not None:
            value, end = raw(data, position)
        else:
            end = skip(data, position)
            value = data[position:end]
        unscaled = int.from_bytes(value, "big", signed=True)
        if not -limit < unscaled < limit:
            raise Malformed(f"a decimal of more than {node.arrow.precision} digits")
        return Decimal(unscaled).scaleb(-scale, context), end

    return decode


def _decode_record(node: Record, selection: Selection, budget: Budget) -> Decode:
    """Values come as a list in the order of the output: names may repeat."""
    places = {index: place for place, index in enumerate(selection.order)}
    steps: list[tuple[int, Decode | None, Skip | None]] = []
    for index, (field, child) in enumerate(zip(node.fields, selection.children, strict=True)):
        if child is None:
            steps.append((-1, None, skipper(field.node, budget)))
        else:
            steps.append((places[index], decoder(child, budget), None))
    width = len(places)

    def decode(data: bytes, position: int) -> tuple[list[Any], int]:
        row: list[Any] = [None] * width
        for place, part, skip in steps:
            if part is not None:
                row[place], position = part(data, position)
            elif skip is not None:
                position = skip(data, position)
        return row, position

    return decode


def _decode_array(item: Decode, read_count: ItemCount) -> Decode:
    def decode(data: bytes, position: int) -> tuple[list[Any], int]:
        out: list[Any] = []
        while True:
            count, position = read_count(data, position)
            if count == 0:
                return out, position
            for _ in range(count):
                value, position = item(data, position)
                out.append(value)

    return decode


def _decode_map(key: Decode, value: Decode, keys: frozenset[int] | None, read_count: ItemCount) -> Decode:
    def decode(data: bytes, position: int) -> tuple[list[tuple[Any, Any]], int]:
        out: list[tuple[Any, Any]] = []
        while True:
            count, position = read_count(data, position)
            if count == 0:
                return out, position
            for _ in range(count):
                name, position = key(data, position)
                if name is None:
                    raise Malformed("a map with a null key")
                content, position = value(data, position)
                if keys is None or name in keys:
                    out.append((name, content))

    return decode


class ScalarDecoder:
    """Decodes the blocks of a file value by value."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self._budget = Budget()
        self._decode = decoder(selection, self._budget)

    def decode(self, payload: bytes, count: int) -> pa.Array:
        """The ``count`` records that fill ``payload``, as an array of structs.

        Raises ``Malformed`` with the reason when they do not.
        """
        self._budget.left = MAX_EMPTY_ITEMS
        position = 0
        rows = []
        try:
            for _ in range(count):
                row, position = self._decode(payload, position)
                rows.append(row)
        except Truncated:
            raise Malformed(f"record {len(rows):,} of {count:,} reaches beyond the block") from None
        if position != len(payload):
            raise Malformed(f"{len(payload) - position:,} bytes are left over after {count:,} records")
        return to_arrow(self.selection, rows)

"""The decoder that goes value by value. Slow and plain: it reads what the lock-step decoder has doubts about.

It is also what tells why a file is damaged, and what the lock-step decoder is compared with in tests. A decoder is a
function of the bytes and a position that gives a value and the position after it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from icefield_avro.nodes import Array, Map, Node, Optional, Primitive, Record, item_size
from icefield_avro.selection import Selection
from icefield_avro.varints import Data, Malformed, Truncated, read_long

Decode = Callable[[bytes, int], tuple[Any, int]]
Skip = Callable[[Data, int], int]

MAX_EMPTY_ITEMS = 1 << 20
"""The most items of no bytes at all (nulls, empty records) that the arrays of one block may hold together."""


class Budget:
    """How many items of no bytes a block may still hold: nothing else bounds what it makes of a few bytes."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_EMPTY_ITEMS

    def spend(self, count: int) -> None:
        """Take ``count`` items from the budget. Raises ``Malformed`` when it is used up."""
        self.left -= count
        if self.left < 0:
            raise Malformed(f"arrays with more than {MAX_EMPTY_ITEMS:,} empty items")


DAY = 86_400_000_000
"""Microseconds."""

_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_DOUBLE = struct.Struct("<d").unpack_from
_FLOAT = struct.Struct("<f").unpack_from


def skipper(node: Node, budget: Budget) -> Skip:
    """A function that gives the position after a value."""
    match node:
        case Optional():
            return _skip_optional(node, budget)
        case Record():
            return _skip_record([skipper(field.node, budget) for field in node.fields])
        case Array():
            return _skip_items(skipper(node.item.node, budget), _ItemCount(node, budget))
        case Map():
            entry = _skip_record([skipper(node.key.node, budget), skipper(node.value.node, budget)])
            return _skip_items(entry, _ItemCount(node, budget))
    width = node.width
    if width is not None:
        return _skip_fixed(width)
    return _skip_sized if node.wire in ("bytes", "string") else _skip_long


def _skip_long(data: Data, position: int) -> int:
    return read_long(data, position)[1]


def _skip_sized(data: Data, position: int) -> int:
    size, start = read_long(data, position)
    end = start + size
    if size < 0:
        raise Malformed("a value of negative length")
    if end > len(data):
        raise Truncated
    return end


def _skip_fixed(width: int) -> Skip:
    def skip(data: Data, position: int) -> int:
        end = position + width
        if end > len(data):
            raise Truncated
        return end

    return skip


def _skip_record(parts: list[Skip]) -> Skip:
    def skip(data: Data, position: int) -> int:
        for part in parts:
            position = part(data, position)
        return position

    return skip


def _branch(data: Data, position: int, optional: Optional) -> tuple[bool, int]:
    """Whether a value follows, and where."""
    branch, position = read_long(data, position)
    if branch == optional.value_branch:
        return True, position
    if branch == optional.null_branch:
        return False, position
    raise Malformed(f"a union with the branch {branch}")


def _skip_optional(node: Optional, budget: Budget) -> Skip:
    inner = skipper(node.inner, budget)

    def skip(data: Data, position: int) -> int:
        present, position = _branch(data, position, node)
        return inner(data, position) if present else position

    return skip


class _ItemCount:
    """Reads the number of items in the next block of an array; the bytes that are left bound it."""

    def __init__(self, node: Array | Map, budget: Budget) -> None:
        self.size = item_size(node)
        self.budget = budget

    def __call__(self, data: Data, position: int) -> tuple[int, int]:
        count, position = read_long(data, position)
        if count < 0:
            count = -count
            _, position = read_long(data, position)
        if count * self.size > len(data) - position:
            raise Malformed(f"an array of {count:,} items where {len(data) - position:,} bytes are left")
        if self.size == 0:
            self.budget.spend(count)
        return count, position


def _skip_items(item: Skip, read_count: _ItemCount) -> Skip:
    def skip(data: Data, position: int) -> int:
        while True:
            count, position = read_count(data, position)
            if count == 0:
                return position
            for _ in range(count):
                position = item(data, position)

    return skip


def decoder(selection: Selection, budget: Budget) -> Decode:
    """A function that gives a value, as ``pyarrow.array`` takes it, and the position after it."""
    inner = _bare_decoder(selection, budget)
    optional = selection.optional
    if optional is None:
        return inner

    def decode(data: bytes, position: int) -> tuple[Any, int]:
        present, position = _branch(data, position, optional)
        return inner(data, position) if present else (None, position)

    return decode


def _bare_decoder(selection: Selection, budget: Budget) -> Decode:
    node = selection.node
    match node:
        case Record():
            return _decode_record(node, selection, budget)
        case Array():
            return _decode_array(decoder(selection.child(0), budget), _ItemCount(node, budget))
        case Map():
            parts = decoder(selection.child(0), budget), decoder(selection.child(1), budget)
            return _decode_map(*parts, selection.keys, _ItemCount(node, budget))
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
    skip = _skip_fixed(node.size)
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
    end = _skip_sized(data, position)
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
    skip = _skip_fixed(node.size)
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


def _decode_array(item: Decode, read_count: _ItemCount) -> Decode:
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


def _decode_map(key: Decode, value: Decode, keys: frozenset[int] | None, read_count: _ItemCount) -> Decode:
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


def to_arrow(selection: Selection, values: list[Any]) -> pa.Array:
    """Decoded values as an array of the selection's type."""
    node = selection.node
    match node:
        case Record():
            return _struct(selection, values)
        case Array():
            items = [item for value in values if value is not None for item in value]
            return _list(selection, values, to_arrow(selection.child(0), items))
        case Map():
            key, value = selection.child(0), selection.child(1)
            pairs = [pair for entries in values if entries is not None for pair in entries]
            arrays = [to_arrow(key, [pair[0] for pair in pairs]), to_arrow(value, [pair[1] for pair in pairs])]
            entry = pa.struct([selection.type.key_field, selection.type.item_field])
            return _list(selection, values, struct_array(entry, len(pairs), arrays, None))
    return pa.array(values, selection.type)


def _struct(selection: Selection, values: list[Any]) -> pa.Array:
    children = []
    for place, index in enumerate(selection.order):
        child = selection.child(index)
        children.append(to_arrow(child, [None if row is None else row[place] for row in values]))
    return struct_array(selection.type, len(values), children, _validity(values))


def _validity(values: list[Any]) -> pa.Buffer | None:
    if not any(value is None for value in values):
        return None
    return pa.array([value is not None for value in values], pa.bool_()).buffers()[1]


def _list(selection: Selection, values: list[Any], child: pa.Array) -> pa.Array:
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + (0 if value is None else len(value)))
    buffers = [_validity(values), pa.array(offsets, pa.int32()).buffers()[1]]
    return pa.Array.from_buffers(selection.type, len(values), buffers, children=[child])


def struct_array(arrow: pa.DataType, length: int, children: list[pa.Array], validity: pa.Buffer | None) -> pa.Array:
    """An array of structs, also of structs without fields."""
    return pa.Array.from_buffers(arrow, length, [validity], children=children)


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

"""Decoding rows with fastavro: of small files, and of blocks that the vectorized decoder cannot prove.

fastavro trusts the bytes: it accepts a negative branch and an integer of eleven bytes, and makes as many items as an
array claims. So each block is walked first (``skipping``), which compares all lengths, counts and branches with the
bytes that are left and states the reason when a block is damaged.

fastavro gets a schema of our own, made from nodes: integers, byte strings and values of fixed width, in records and
arrays. Ranges, symbols, decimals and text are checked when the Arrow arrays are made, as in the vectorized decoder.
"""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from itertools import count
from typing import Any, Final

import numpy as np
import pyarrow as pa
from fastavro import parse_schema, schemaless_reader

from icefield_avro.arrays import Vector
from icefield_avro.nodes import SIZED, VARINTS, Array, Field, Map, Node, Optional, Primitive, Record
from icefield_avro.selection import Selection
from icefield_avro.skipping import MAX_EMPTY_ITEMS, Budget, skipper
from icefield_avro.varints import Data, Malformed, Truncated, encode_bytes, encode_long
from icefield_avro.vectorized import ByteBuffer, Memory, Unproven
from icefield_avro.vectorized.rows import Rows, from_children, from_items, nulls
from icefield_avro.vectorized.slices import from_parts
from icefield_avro.vectorized.steps import SizedStep, VarintStep, from_matrix

_PADDING: Final = 64
_INT: Final = np.iinfo(np.int32)


class RowDecoder:
    """Decodes blocks of one writer's schema, with a Python object for each value."""

    def __init__(self, record: Record, selection: Selection) -> None:
        self._selection = selection
        self._budget = Budget()
        self._skip = skipper(record, self._budget)
        self._schema = _schema_of(record)

    def decode(self, payload: Data, records: int) -> pa.Array:
        """The ``records`` that fill ``payload``, as an array of structs. Raises ``Malformed`` with the reason."""
        self._check(payload, records)
        # With a count before them and a zero after them, the records of a block have the layout of an array.
        data = encode_long(records) + bytes(payload) + b"\0"
        rows: Any = schemaless_reader(BytesIO(data), self._schema, None)
        try:
            return _array(self._selection, rows, Rows(records))
        except Unproven as error:
            raise Malformed(str(error)) from None

    def _check(self, payload: Data, records: int) -> None:
        """Walk over the block. Raises ``Malformed`` unless exactly this number of records fills it."""
        self._budget.left = MAX_EMPTY_ITEMS
        position = passed = 0
        try:
            while passed < records:
                position = self._skip(payload, position)
                passed += 1
        except Truncated:
            raise Malformed(f"record {passed:,} of {records:,} reaches beyond the block") from None
        if position != len(payload):
            raise Malformed(f"{len(payload) - position:,} bytes are left over after {records:,} records")


@lru_cache(maxsize=128)
def _schema_of(record: Record) -> Any:
    return parse_schema({"type": "array", "items": _plain_schema(record, count())})


def _plain_schema(node: Node, names: count[int]) -> Any:
    """The schema of a node's bytes alone. Fields are named by their index."""
    match node:
        case Optional():
            branches = [_plain_schema(node.inner, names)]
            if node.null_branch is not None:
                branches.insert(node.null_branch, "null")
            return branches
        case Record():
            return _plain_record(node.fields, names)
        case Array():
            return {"type": "array", "items": _plain_schema(node.item.node, names)}
        case Map():
            return {"type": "array", "items": _plain_record((node.key, node.value), names)}
    if node.wire == "null":
        return "null"
    if node.wire in VARINTS:
        return "long"
    return "bytes" if node.wire in SIZED else {"type": "fixed", "name": f"n{next(names)}", "size": node.width}


def _plain_record(fields: tuple[Field, ...], names: count[int]) -> dict[str, Any]:
    listed = [{"name": _name(place), "type": _plain_schema(field.node, names)} for place, field in enumerate(fields)]
    return {"type": "record", "name": f"n{next(names)}", "fields": listed}


def _name(place: int) -> str:
    return f"f{place}"


_KEY, _VALUE = _name(0), _name(1)


def _array(selection: Selection, values: list[Any], rows: Rows) -> pa.Array:
    """The array of decoded values, which may include None; ``rows`` are the rows of the values."""
    node = selection.node
    present = None
    if selection.optional is not None and None in values:
        present = np.fromiter((value is not None for value in values), bool, len(values))
    if not values or (present is not None and not present.any()):
        return nulls(selection.type, rows)
    if isinstance(node, Primitive):
        return _leaf(node, values, present, rows)
    if present is not None:
        values, rows = [value for value in values if value is not None], rows.subset(np.flatnonzero(present))
    if isinstance(node, Record):
        columns = [(selection.child(index), _name(index)) for index in selection.order]
        children = [_array(child, [row[name] for row in values], rows) for child, name in columns]
        return from_children(selection.type, children, rows)
    if pa.types.is_binary(selection.type):
        return from_parts(selection.type, [_encoded_map(value) for value in values], rows, None)
    if isinstance(node, Map):
        return _map(selection, values, rows)
    items = [item for value in values for item in value]
    return from_items(selection.type, _lengths(values), rows, _array(selection.child(0), items, Rows(len(items))))


def _map(selection: Selection, values: list[Any], rows: Rows) -> pa.Array:
    keys = selection.keys
    if keys is not None:
        values = [[entry for entry in value if entry[_KEY] in keys] for value in values]
    entries = [entry for value in values for entry in value]
    names = [entry[_KEY] for entry in entries]
    if selection.child(0).optional is not None and None in names:
        raise Malformed("a map with a null key")
    inside = Rows(len(entries))
    children = [
        _array(selection.child(0), names, inside),
        _array(selection.child(1), [entry[_VALUE] for entry in entries], inside),
    ]
    entry_type = pa.struct([selection.type.key_field, selection.type.item_field])
    return from_items(selection.type, _lengths(values), rows, from_children(entry_type, children, inside))


def _encoded_map(entries: list[Any]) -> bytes:
    """The bytes of a map as this plugin writes it. Raises ``Malformed`` for a null, and for a key beyond 32 bits."""
    parts = [encode_long(len(entries))] if entries else []
    for entry in entries:
        key, value = entry[_KEY], entry[_VALUE]
        if key is None or value is None:
            raise Malformed("a map with a null")
        if not _INT.min <= key <= _INT.max:
            raise Malformed("a key out of range")
        parts += encode_long(key), encode_bytes(value) if isinstance(value, bytes) else encode_long(value)
    return b"".join((*parts, b"\0"))


def _leaf(node: Primitive, values: list[Any], present: Vector | None, rows: Rows) -> pa.Array:
    """The array of values that are integers or bytes. Raises ``Unproven`` for a value that the type does not have."""
    if node.wire == "null":
        return nulls(node.arrow, rows)
    if node.wire in VARINTS:
        numbers = values if present is None else [value or 0 for value in values]
        return VarintStep(node).array(np.array(numbers, np.int64), present, rows)
    if node.width is not None:
        nothing = bytes(node.width)
        data = b"".join(values if present is None else [nothing if value is None else value for value in values])
        return from_matrix(node, np.frombuffer(data, np.uint8).reshape(len(values), node.width), rows, present)
    parts = values if present is None else [value or b"" for value in values]
    if pa.types.is_decimal(node.arrow):
        lengths = _lengths(parts)
        buffer = ByteBuffer([b"".join(parts)], _PADDING, Memory())
        return SizedStep(node).array(buffer, np.cumsum(lengths) - lengths, lengths, present, rows)
    try:
        return from_parts(node.arrow, parts, rows, present)
    except pa.ArrowInvalid:
        raise Malformed("a string that is not UTF-8") from None


def _lengths(values: list[Any]) -> Vector:
    return np.fromiter(map(len, values), np.int64, len(values))

"""Arrow batches as the bytes of Avro records, a column at a time."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from icefield.errors import InvalidArgument

from icefield_avro.arrays import Vector, booleans, both, offsets, valid_rows, values
from icefield_avro.nodes import Array, Field, Map, Node, Optional, Primitive, Record
from icefield_avro.row_bytes import EncodedRows, RowBytes
from icefield_avro.scalar_encoding import encode_few

FEW_ROWS: Final = 12
_FEW_BYTES: Final = 32 * 1024
_WIDEST_MATRIX = 32  # bytes of a fixed type; a longer one goes through Arrow's join


def encode(record: Record, columns: list[pa.Array], rows: int) -> EncodedRows:
    """Encode ``rows`` rows; ``columns`` are the fields of the record, in its order.

    Raises ``InvalidArgument`` for a null where the schema allows none.
    """
    if rows <= FEW_ROWS and sum(column.nbytes for column in columns) <= _FEW_BYTES:
        return encode_few(record, columns, rows)
    out = RowBytes(rows)
    for field, column in zip(record.fields, columns, strict=True):
        _add(out, field, field.node, column, None)
    return EncodedRows(*out.finish())


def _add(out: RowBytes, field: Field, node: Node, array: pa.Array, present: Vector | None) -> None:
    """Add a column; rows that are not ``present`` (their parent is null) get no byte at all."""
    valid = valid_rows(array)
    if isinstance(node, Optional):
        _add_branch(out, node, valid, present)
        _add_value(out, field, node.inner, array, both(present, valid))
        return
    is_null = isinstance(node, Primitive) and node.wire == "null"
    if valid is not None and not is_null and not (valid if present is None else valid | ~present).all():
        raise InvalidArgument(f"column '{field.name}' is required and has a null", field_id=field.field_id)
    _add_value(out, field, node, array, present)


def _add_branch(out: RowBytes, node: Optional, valid: Vector | None, present: Vector | None) -> None:
    branch = np.uint8(node.value_branch * 2)
    if valid is None:
        matrix = np.full((out.rows, 1), branch)
    else:
        matrix = np.where(valid, branch, np.uint8(2) - branch).reshape(out.rows, 1)
    out.add_matrix(matrix, present)


def _add_value(out: RowBytes, field: Field, node: Node, array: pa.Array, present: Vector | None) -> None:
    match node:
        case Primitive():
            _add_primitive(out, node, array, present)
        case Record():
            for index, child in enumerate(node.fields):
                _add(out, child, child.node, array.field(index), present)
        case Map() if pa.types.is_binary(array.type):
            out.add_binary(offsets(array), array.buffers()[2] or b"", present)
        case Array() | Map():
            _add_items(out, node, array, present)


def _add_primitive(out: RowBytes, node: Primitive, array: pa.Array, present: Vector | None) -> None:
    match node.wire:
        case "boolean":
            out.add_matrix(booleans(array).view(np.uint8).reshape(out.rows, 1), present)
        case "int":
            out.add_varints(values(array, np.int32).astype(np.int64), present)
        case "long":
            out.add_varints(values(array, np.int64), present)
        case "float" | "double":
            width = array.type.bit_width // 8
            out.add_matrix(values(array, f"V{width}").view(np.uint8).reshape(out.rows, width), present)
        case "string" | "bytes":
            starts = offsets(array)
            out.add_varints(np.diff(starts).astype(np.int64), present)
            out.add_binary(starts, array.buffers()[2] or b"", present)
        case "fixed":
            _add_fixed(out, node, array, present)


def _add_fixed(out: RowBytes, node: Primitive, array: pa.Array, present: Vector | None) -> None:
    if pa.types.is_decimal(node.arrow):
        little = values(array, "V16").view(np.uint8).reshape(out.rows, 16)
        out.add_matrix(little[:, node.size - 1 :: -1] if node.size < 16 else little[:, ::-1], present)
        return
    if not node.size:
        return
    if node.size <= _WIDEST_MATRIX:
        out.add_matrix(values(array, f"V{node.size}").view(np.uint8).reshape(out.rows, node.size), present)
        return
    starts = (np.arange(out.rows + 1, dtype=np.int64) + array.offset) * node.size
    out.add_binary(starts, array.buffers()[1] or b"", present)


def _add_items(out: RowBytes, node: Array | Map, array: pa.Array, present: Vector | None) -> None:
    """The items of all rows are encoded as rows of their own; then the bytes of a row's items are adjacent."""
    counts = np.diff(offsets(array))
    if present is not None and (counts[~present] > 0).any():  # a null with items behind it
        array = array.take(pa.array(np.where(present, np.arange(out.rows), -1), mask=~present))
        counts = np.diff(offsets(array))
    ends = offsets(array)
    first, last = int(ends[0]), int(ends[-1])
    items = RowBytes(last - first)
    if isinstance(node, Array):
        _add(items, node.item, node.item.node, array.values.slice(first, last - first), None)
    else:
        _add(items, node.key, node.key.node, array.keys.slice(first, last - first), None)
        _add(items, node.value, node.value.node, array.items.slice(first, last - first), None)
    starts, data = items.finish()
    out.add_varints(counts.astype(np.int64), present)
    out.add_binary(starts[ends - first], data, None)
    some = counts > 0
    out.add_matrix(np.zeros((out.rows, 1), np.uint8), some if present is None else some & present)

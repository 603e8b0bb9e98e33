"""The binary form of whole columns of values, without a Python object per value.

Bounds in manifests are read in this way, from a column of bytes into an Arrow array of the field's own type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield import types as iceberg
from icefield.base import compute as pc
from icefield.errors import InvalidArgument
from icefield.types.arrow.pieces import one_array
from icefield.types.arrow.types import to_arrow_type
from icefield.types.primitive import IcebergType
from icefield.types.values.binary import FIXED_WIDTHS, WRITTEN_BEFORE_PROMOTION
from icefield.types.values.calendar import MICROS_PER_DAY

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class _BinaryColumn:
    """A binary array taken apart: its bytes, and where each value starts and how long it is (-1 for null)."""

    def __init__(self, data: pa.Array) -> None:
        self.count = len(data)
        wide = pa.types.is_large_binary(data.type)
        _, offsets, values = data.buffers()
        if offsets is None or self.count == 0:
            ends: Ints = np.zeros(self.count + 1, np.int64)
        else:
            ends = np.frombuffer(offsets, np.int64 if wide else np.int32)
            ends = ends[data.offset : data.offset + self.count + 1].astype(np.int64)
        self.raw: Bytes = np.frombuffer(values, np.uint8) if values is not None else np.zeros(0, np.uint8)
        self.starts = ends[:-1]
        self.lengths = np.diff(ends)
        if data.null_count:
            self.lengths[~_valid(data)] = -1

    def gather(self, rows: Mask, width: int) -> Bytes:
        """The bytes of the chosen rows, each ``width`` long, one row of the result a value."""
        starts = self.starts[rows]
        if len(starts) == 0:
            return np.zeros((0, width), np.uint8)
        if starts[-1] - starts[0] == (len(starts) - 1) * width and bool(np.all(np.diff(starts) == width)):
            return self.raw[starts[0] : starts[0] + len(starts) * width].reshape(-1, width)
        gathered: Bytes = self.raw[starts[:, None] + np.arange(width)]
        return gathered


def from_bytes_array(iceberg_type: IcebergType, data: pa.Array) -> pa.Array:
    """Decode a column of single values; the result has the Arrow type of ``iceberg_type``.

    Null stays null. Invalid bytes (a wrong length, a string that is not UTF-8, digits beyond the precision) become
    null, too: a damaged bound is an unknown bound. Values written before a promotion are recognised by their length. A
    truncated ``fixed`` is filled up with zero bytes, which keeps it a bound. Bounds of geometries are points: they stay
    bytes, for ``geo_point_from_bytes``.

    Raises ``InvalidArgument`` for a type without a binary form.
    """
    data = one_array(data)
    try:
        data = data if pa.types.is_binary(data.type) or pa.types.is_large_binary(data.type) else data.cast(pa.binary())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidArgument(f"not an array of bytes: {error}") from None
    if type(iceberg_type) in FIXED_WIDTHS:
        return _decode_numbers(iceberg_type, _BinaryColumn(data))
    match iceberg_type:
        case iceberg.StringType():
            return _decode_string(data)
        case iceberg.BinaryType() | iceberg.GeometryType() | iceberg.GeographyType():
            return data.cast(pa.binary())
        case iceberg.UnknownType():
            return pa.nulls(len(data))
        case iceberg.BooleanType():
            column = _BinaryColumn(data)
            valid: Mask = column.lengths == 1
            bits = np.zeros(column.count, np.bool_)
            bits[valid] = column.gather(valid, 1).ravel() != 0
            return _array(iceberg_type, valid, np.packbits(bits, bitorder="little"))
        case iceberg.UUIDType():
            return _decode_bytes(iceberg_type, _BinaryColumn(data), 16, 16)
        case iceberg.FixedType():
            return _decode_bytes(iceberg_type, _BinaryColumn(data), 1, iceberg_type.length)
        case iceberg.DecimalType():
            return _decode_decimals(iceberg_type, _BinaryColumn(data))
    raise InvalidArgument(f"type {iceberg_type} has no binary single-value form")


def _decode_numbers(iceberg_type: IcebergType, column: _BinaryColumn) -> pa.Array:
    dtype = np.dtype(FIXED_WIDTHS[type(iceberg_type)].format)
    valid: Mask = column.lengths == dtype.itemsize
    if valid.all():
        values = np.ascontiguousarray(column.gather(valid, dtype.itemsize)).view(dtype).ravel()
    else:
        values = np.zeros(column.count, dtype)
        values[valid] = np.ascontiguousarray(column.gather(valid, dtype.itemsize)).view(dtype).ravel()
        valid = valid | _decode_promoted(iceberg_type, column, values)
    if isinstance(iceberg_type, iceberg.TimeType):
        valid = valid & (values >= 0) & (values < MICROS_PER_DAY)
    return _array(iceberg_type, valid, values.astype(dtype.newbyteorder("="), copy=False))


def _decode_promoted(iceberg_type: IcebergType, column: _BinaryColumn, values: npt.NDArray[Any]) -> Mask:
    """Put the values that were written before a promotion among the others; states which rows they are."""
    form, factor = WRITTEN_BEFORE_PROMOTION.get(type(iceberg_type), ("", 1))
    if not form:
        return np.zeros(column.count, np.bool_)
    rows: Mask = column.lengths == 4
    small = np.ascontiguousarray(column.gather(rows, 4)).view(form).ravel()
    fits = np.ones(len(small), np.bool_) if factor == 1 else np.abs(small.astype(np.int64)) <= (2**63 - 1) // factor
    values[rows] = np.where(fits, small, 0).astype(values.dtype) * factor
    rows[rows] = fits
    return rows


def _decode_bytes(iceberg_type: IcebergType, column: _BinaryColumn, least: int, width: int) -> pa.Array:
    """Bytes of a fixed width; shorter ones of at least ``least`` bytes are filled up with zeros."""
    valid: Mask = (column.lengths >= least) & (column.lengths <= width)
    if column.count * width > 2**31 - 1:
        raise InvalidArgument(f"{column.count} values of type {iceberg_type} do not fit in memory")
    values = np.zeros((column.count, width), np.uint8)
    for length, rows in _by_length(column, valid):
        values[rows, :length] = column.gather(rows, length)
    return _array(iceberg_type, valid, values)


def _decode_decimals(iceberg_type: iceberg.DecimalType, column: _BinaryColumn) -> pa.Array:
    """Big-endian numbers of any length, a group of equal length at a time, to Arrow's 16 little-endian bytes."""
    valid: Mask = (column.lengths > 0) & (column.lengths <= 16)
    wide = np.zeros((column.count, 16), np.uint8)
    for length, rows in _by_length(column, valid):
        digits = column.gather(rows, length)
        wide[rows, :length] = digits[:, ::-1]
        wide[rows, length:] = np.where(digits[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    valid &= _within_precision(wide, iceberg_type.precision)
    return _array(iceberg_type, valid, wide)


def _within_precision(wide: Bytes, precision: int) -> Mask:
    """Whether each 128-bit number has at most ``precision`` digits. Compares by halves: numpy has no such integer."""
    limit = 10**precision
    low, high = wide.view("<u8")[:, 0], wide.view("<i8")[:, 1]
    top_low, top_high = np.uint64(limit & (2**64 - 1)), np.int64(limit >> 64)
    bottom_low, bottom_high = np.uint64(-limit & (2**64 - 1)), np.int64(-limit >> 64)
    below = (high < top_high) | ((high == top_high) & (low < top_low))
    above = (high > bottom_high) | ((high == bottom_high) & (low > bottom_low))
    within: Mask = below & above
    return within


def _by_length(column: _BinaryColumn, valid: Mask) -> list[tuple[int, Mask]]:
    lengths = np.unique(column.lengths[valid])
    return [(int(length), column.lengths == length) for length in lengths]


def _decode_string(data: pa.Array) -> pa.Array:
    string = pa.large_string() if pa.types.is_large_binary(data.type) else pa.string()
    try:
        return data.cast(string).cast(pa.string())
    except pa.ArrowInvalid:
        # Only a damaged file comes here; its sound values are kept.
        sound = pa.array([_is_utf8(value) for value in data.to_pylist()])
        return pc.if_else(sound, data, pa.scalar(None, data.type)).cast(string).cast(pa.string())


def _is_utf8(value: bytes | None) -> bool:
    try:
        return value is not None and value.decode("utf-8") is not None
    except UnicodeDecodeError:
        return False


def _valid(data: pa.Array) -> Mask:
    mask: Mask = data.is_valid().to_numpy(zero_copy_only=False)
    return mask


def _array(iceberg_type: IcebergType, valid: Mask, values: npt.NDArray[Any]) -> pa.Array:
    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [bitmap, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(to_arrow_type(iceberg_type), len(valid), buffers)

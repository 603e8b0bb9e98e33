"""Minima and maxima in footers, decoded where their order can be relied on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefield_parquet.schema import Leaf

_BYTES = frozenset({"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"})
_WITHOUT_ORDER = frozenset({"Interval", "Geometry", "Geography"})
_NUMBERS = frozenset({"BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE"})
_UNITS = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


def decode_bounds(footer: Any, groups: Sequence[Any], leaf: Leaf, *, ordered: bool) -> tuple[pa.Array, pa.Array] | None:
    """Minimum and maximum of a leaf in each row group, in the file's Arrow type; null where a row group states none.

    ``ordered``: the footer says that statistics are in the order of their column's type. Otherwise the statistics may
    be the deprecated ones, for which writers always compared signed numbers. None when this type's statistics are not
    understood.
    """
    column = footer.schema.column(leaf.index)
    if column.physical_type in _BYTES and json.loads(column.logical_type.to_json()).get("Type") in _WITHOUT_ORDER:
        return None
    decode = _decoder(column, leaf.field.type) if ordered or _is_signed(column, leaf.field.type) else None
    if decode is None:
        return None
    lows, highs = [], []
    for group in groups:
        statistics = group.column(leaf.index).statistics
        known = statistics is not None and statistics.has_min_max
        lows.append(statistics.min_raw if known else None)
        highs.append(statistics.max_raw if known else None)
    try:
        return _sound(decode(_signed_zeros(lows, -0.0)), decode(_signed_zeros(highs, 0.0)))
    except (pa.ArrowException, UnicodeError, OverflowError, ValueError, TypeError):
        return None


def _is_signed(column: Any, data_type: pa.DataType) -> bool:
    """Whether a column's order is that of its physical type as numbers with signs."""
    return column.physical_type in _NUMBERS and not pa.types.is_unsigned_integer(data_type)


def _sound(low: pa.Array, high: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Drop bounds with a minimum above the maximum: their writer compared values in another order."""
    wrong = pc.greater(low, high)
    if not pc.any(wrong).as_py():
        return low, high
    nothing = pa.scalar(None, low.type)
    return pc.if_else(wrong, nothing, low), pc.if_else(wrong, nothing, high)


def _signed_zeros(values: list[Any], zero: float) -> list[Any]:
    """Replace zeros by the zero that bounds both: a minimum of +0.0 may hide a -0.0, and a maximum the reverse."""
    return [zero if isinstance(value, float) and value == 0 else value for value in values]


Decoder = Callable[[list[Any]], pa.Array]


def _decoder(column: Any, data_type: pa.DataType) -> Decoder | None:
    if pa.types.is_dictionary(data_type):
        data_type = data_type.value_type
    physical = column.physical_type
    if pa.types.is_decimal(data_type):
        return _decimals(data_type, physical)
    if physical in ("INT32", "INT64"):
        return _integers(column, data_type, physical)
    if physical in ("FLOAT", "DOUBLE"):
        return _floats(data_type)
    if physical == "BOOLEAN":
        return lambda values: pa.array(values, pa.bool_())
    if physical == "BYTE_ARRAY":
        return _binaries(data_type)
    if physical == "FIXED_LEN_BYTE_ARRAY" and pa.types.is_fixed_size_binary(data_type):
        return lambda values: pa.array(values, data_type)
    return None


def _integers(column: Any, data_type: pa.DataType, physical: str) -> Decoder | None:
    stored = pa.int32() if physical == "INT32" else pa.int64()
    if pa.types.is_time(data_type) or pa.types.is_timestamp(data_type):
        # A stored Arrow schema may name another unit than the column's.
        if json.loads(column.logical_type.to_json()).get("timeUnit") != _UNITS.get(data_type.unit):
            return None
        return lambda values: pa.array(values, stored).view(data_type)
    if pa.types.is_date32(data_type) or (pa.types.is_integer(data_type) and data_type.bit_width == stored.bit_width):
        return lambda values: pa.array(values, stored).view(data_type)
    if pa.types.is_integer(data_type):
        return lambda values: pa.array(values, stored).cast(data_type)
    return None


def _floats(data_type: pa.DataType) -> Decoder | None:
    if not _is_float(data_type):
        return None
    return lambda values: pa.array(values, data_type, from_pandas=True)  # a NaN tells nothing and becomes null


def _is_float(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_float32(data_type) or pa.types.is_float64(data_type))


def _binaries(data_type: pa.DataType) -> Decoder | None:
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type):
        return lambda values: pa.array(values, pa.binary()).cast(pa.string())
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type) or pa.types.is_binary_view(data_type):
        return lambda values: pa.array(values, pa.binary())
    return None


def _decimals(data_type: pa.DataType, physical: str) -> Decoder | None:
    if not pa.types.is_decimal128(data_type):
        return None

    def decode(values: list[Any]) -> pa.Array:
        unscaled = [
            value if isinstance(value, int | None) else int.from_bytes(value, "big", signed=True) for value in values
        ]
        raw = b"".join((value or 0).to_bytes(16, "little", signed=True) for value in unscaled)
        valid = pa.array([value is not None for value in unscaled])
        decoded = pa.Array.from_buffers(data_type, len(unscaled), [None, pa.py_buffer(raw)])
        return pc.if_else(valid, decoded, pa.scalar(None, data_type))

    return decode if physical in ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY") else None

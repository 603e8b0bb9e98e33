"""What a footer tells of values: statistics of row groups for skipping them, and of a whole file for its metrics.

Only minima and maxima whose sort order the format defines are used (pyarrow withholds those of INTERVAL, INT96 and
of writers known to get them wrong), and only for leaves that hold one value a row, outside lists and maps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from icefield.arrow_types import from_arrow_type
from icefield.errors import IcefieldError
from icefield.metrics import Metrics
from icefield.values import from_arrow_scalar

from icefield_parquet.schema import Leaf, leaves

_UNITS = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


class RowGroupStatistics:
    """The statistics of some row groups as arrays, one item a row group: what the metrics evaluators ask for.

    ``leaves_by_id`` are the leaves that a filter may name; ``types`` gives, by field id, the Arrow type that bounds are
    wanted in (the table's, where a column was promoted). Whatever cannot be told is None, or null in an array.
    """

    def __init__(
        self, footer: Any, groups: Sequence[int], leaves_by_id: Mapping[int, Leaf], types: Mapping[int, pa.DataType]
    ) -> None:
        self._footer = footer
        self._groups = [footer.row_group(group) for group in groups]
        self._leaves = leaves_by_id
        self._types = types
        self._bounds: dict[int, tuple[pa.Array, pa.Array] | None] = {}

    @property
    def num_files(self) -> int:
        return len(self._groups)

    def record_count(self) -> pa.Array:
        return pa.array([group.num_rows for group in self._groups], pa.int64())

    def value_count(self, field_id: int) -> pa.Array | None:
        return self.record_count() if self._leaf(field_id) else None

    def null_count(self, field_id: int) -> pa.Array | None:
        leaf = self._leaf(field_id)
        if leaf is None:
            return None
        return pa.array([_null_count(group, leaf) for group in self._groups], pa.int64())

    def nan_count(self, field_id: int) -> pa.Array | None:
        """Footers do not count NaN."""
        return None

    def lower(self, field_id: int) -> pa.Array | None:
        bounds = self._both(field_id)
        return bounds[0] if bounds else None

    def upper(self, field_id: int) -> pa.Array | None:
        bounds = self._both(field_id)
        return bounds[1] if bounds else None

    def _leaf(self, field_id: int) -> Leaf | None:
        leaf = self._leaves.get(field_id)
        return leaf if leaf is not None and not leaf.repeated else None

    def _both(self, field_id: int) -> tuple[pa.Array, pa.Array] | None:
        if field_id not in self._bounds:
            self._bounds[field_id] = self._decode(field_id)
        return self._bounds[field_id]

    def _decode(self, field_id: int) -> tuple[pa.Array, pa.Array] | None:
        leaf = self._leaf(field_id)
        if leaf is None:
            return None
        bounds = decode_bounds(self._footer, self._groups, leaf)
        wanted = self._types.get(field_id)
        if bounds is None or wanted is None or bounds[0].type == wanted:
            return bounds
        try:
            return bounds[0].cast(wanted), bounds[1].cast(wanted)
        except pa.ArrowException:
            return None


def file_metrics(footer: Any, file_schema: pa.Schema) -> Metrics:
    """Counts, sizes and bounds of a whole file by field id, as far as the footer tells them."""
    groups = [footer.row_group(position) for position in range(footer.num_row_groups)]
    sizes: dict[int, int] = {}
    values: dict[int, int] = {}
    nulls: dict[int, int] = {}
    lower: dict[int, Any] = {}
    upper: dict[int, Any] = {}
    for leaf in leaves(file_schema):
        field_id = leaf.field_id
        if field_id is None:
            continue
        sizes[field_id] = sum(group.column(leaf.index).total_compressed_size for group in groups)
        if leaf.repeated:
            continue
        values[field_id] = footer.num_rows
        counts = [_null_count(group, leaf) for group in groups]
        if None not in counts:
            nulls[field_id] = sum(filter(None, counts))
        bounds = _file_bounds(footer, groups, leaf, counts)
        if bounds is not None:
            lower[field_id], upper[field_id] = bounds
    return Metrics(footer.num_rows, sizes, values, nulls, lower_bounds=lower, upper_bounds=upper)


def _file_bounds(footer: Any, groups: list[Any], leaf: Leaf, nulls: list[int | None]) -> tuple[Any, Any] | None:
    """The least and greatest value as internal values; None unless each row group with values tells its own."""
    with_values = [group for group, null in zip(groups, nulls, strict=True) if null is None or null < group.num_rows]
    bounds = decode_bounds(footer, with_values, leaf) if with_values else None
    if bounds is None or bounds[0].null_count or bounds[1].null_count:
        return None
    low, high = bounds[0].take(pc.sort_indices(bounds[0])), bounds[1].take(pc.sort_indices(bounds[1]))
    try:
        kind = from_arrow_type(leaf.field.type)
        return from_arrow_scalar(kind, low[0]), from_arrow_scalar(kind, high[-1])
    except (IcefieldError, pa.ArrowException):
        return None


def _null_count(group: Any, leaf: Leaf) -> int | None:
    statistics = group.column(leaf.index).statistics
    return statistics.null_count if statistics is not None and statistics.has_null_count else None


def decode_bounds(footer: Any, groups: Sequence[Any], leaf: Leaf) -> tuple[pa.Array, pa.Array] | None:
    """Minimum and maximum of a leaf in each row group, in the file's Arrow type; null where a group tells none.

    None when this type's statistics are not understood.
    """
    decode = _decoder(footer.schema.column(leaf.index), leaf.field.type)
    if decode is None:
        return None
    lows, highs = [], []
    for group in groups:
        statistics = group.column(leaf.index).statistics
        known = statistics is not None and statistics.has_min_max
        lows.append(statistics.min_raw if known else None)
        highs.append(statistics.max_raw if known else None)
    try:
        return decode(_signed_zeros(lows, -0.0)), decode(_signed_zeros(highs, 0.0))
    except (pa.ArrowException, UnicodeError, OverflowError, ValueError, TypeError):
        return None


def _signed_zeros(values: list[Any], zero: float) -> list[Any]:
    """Zeros of the sign that bounds all zeros: a minimum of +0.0 may hide a -0.0, and a maximum the reverse."""
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

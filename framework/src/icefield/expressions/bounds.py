"""Tests predicates against the lower and upper bounds of many files (or manifests), in one pass per column.

Bounds enclose the values of a column that are neither null nor NaN. They need not occur in it, since strings and bytes
may be truncated. A mask is true only where its statement is *proven*: unknown is false.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import methodcaller
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.base import compute as pc
from icefield.expressions.bound import BoundPredicate
from icefield.expressions.expressions import Op
from icefield.types import UUIDType
from icefield.types.arrow.pieces import one_array

Mask = npt.NDArray[np.bool_]

_STEPS = 32
"""The approximate cost of one binary search in Python, as a number of values that Arrow compares."""


class Bounds:
    """The bounds of one field over many files, without the bounds that cannot be trusted.

    ``lower`` and ``upper`` are arrays of the field's Arrow type, null where unknown, or None if unknown for all files.
    NaN is not a bound, and both bounds are dropped where the lower is above the upper. The bounds of a uuid are widened
    until they hold in both orders that writers used (unsigned bytes, and signed halves as in Java).
    """

    def __init__(self, leaf: BoundPredicate, lower: pa.Array | None, upper: pa.Array | None, count: int) -> None:
        kind = leaf.arrow.type
        self._count = count
        self._lower = _plain(lower, kind, count)
        self._upper = _plain(upper, kind, count)
        if leaf.is_floating:
            self._lower, self._upper = _without_nan(self._lower), _without_nan(self._upper)
        if isinstance(leaf.field.field_type, UUIDType):
            self._lower, self._upper = _agreed_uuid_bounds(self._lower, self._upper)
        if lower is not None and upper is not None:
            self._lower, self._upper = _in_order(self._lower, self._upper)

    def exclude(self, op: Op, leaf: BoundPredicate) -> Mask:
        """Where no value within the bounds passes ``op`` with the leaf's literal.

        ``op`` is the leaf's operator or its negation: all values pass a predicate where its negation is excluded.
        """
        value, lower, upper = leaf.arrow, self._lower, self._upper
        match op:
            case Op.LT:
                return to_mask(pc.greater_equal(lower, value))
            case Op.LT_EQ:
                return to_mask(pc.greater(lower, value))
            case Op.GT:
                return to_mask(pc.less_equal(upper, value))
            case Op.GT_EQ:
                return to_mask(pc.less(upper, value))
            case Op.EQ:
                return to_mask(pc.greater(lower, value)) | to_mask(pc.less(upper, value))
            case Op.NOT_EQ:
                return to_mask(pc.equal(lower, value)) & to_mask(pc.equal(upper, value))
            case Op.IN:
                # The values of the set within the bounds are at the positions from ``first`` up to, not including,
                # ``past``.
                first = np.where(_valid(lower), count_smaller(value, lower, or_equal=False), 0)
                past = np.where(_valid(upper), count_smaller(value, upper, or_equal=True), len(value))
                return np.asarray(past <= first, np.bool_)
            case Op.NOT_IN:
                return to_mask(pc.equal(lower, upper)) & is_among(value, lower)
            case Op.STARTS_WITH:
                above = to_mask(pc.greater(lower, value)) & ~to_mask(pc.starts_with(lower, leaf.value))
                return to_mask(pc.less(upper, value)) | above
            case Op.NOT_STARTS_WITH:
                return to_mask(pc.starts_with(lower, leaf.value)) & to_mask(pc.starts_with(upper, leaf.value))
        return np.zeros(self._count, np.bool_)


def is_among(values: pa.Array, probes: pa.Array) -> Mask:
    """Which probes occur in the sorted ``values`` of the same type; false for null and NaN."""
    found = count_smaller(values, probes, or_equal=True) > count_smaller(values, probes, or_equal=False)
    return np.asarray(found & _valid(probes), np.bool_)


def are_few(probes: pa.Array | pa.ChunkedArray, values: pa.Array) -> bool:
    """Whether a binary search for each probe costs less than a scan of the sorted values."""
    return len(probes) * _STEPS < len(values)


def count_smaller(values: pa.Array, probes: pa.Array, *, or_equal: bool) -> npt.NDArray[np.int64]:
    """The number of sorted ``values`` that are smaller than each probe (or equal to it). Undefined for a null probe."""
    numbers = _as_numbers(values)
    if numbers is not None:
        side = "right" if or_equal else "left"
        return np.searchsorted(numbers, _as_numbers(probes), side=side)  # type: ignore[call-overload, no-any-return]
    if are_few(probes, values) and _sorts_as_python(values.type):
        search, key = bisect_right if or_equal else bisect_left, methodcaller("as_py")
        found = (0 if probe is None else search(values, probe, key=key) for probe in probes.to_pylist())
        return np.fromiter(found, np.int64, len(probes))
    # Arrow sorts any type, and sorts stably: equal elements keep the order that they have in the array.
    together = [values, probes] if or_equal else [probes, values]
    order = pc.sort_indices(pa.concat_arrays(together)).to_numpy()
    start = 0 if or_equal else len(probes)
    is_value = (order >= start) & (order < start + len(values))
    seen = np.empty(len(order), np.int64)
    seen[order] = np.cumsum(is_value)
    return seen[len(values) :] if or_equal else seen[: len(probes)]


def _sorts_as_python(kind: pa.DataType) -> bool:
    # Python compares strings by code point, which is the order of their UTF-8.
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_decimal(kind)
    )


def _as_numbers(array: pa.Array) -> npt.NDArray[Any] | None:
    """A numeric or temporal array for NumPy, with zeros for nulls; None for any other type."""
    kind = array.type
    if pa.types.is_temporal(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    return pc.fill_null(array, 0).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def to_mask(array: Any) -> Mask:
    """A NumPy mask of a boolean Arrow array, false for null."""
    return pc.fill_null(array, False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _valid(array: pa.Array) -> Mask:
    return array.is_valid().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _plain(array: pa.Array | pa.ChunkedArray | None, kind: pa.DataType, count: int) -> pa.Array:
    if array is None:
        return pa.nulls(count, kind)
    array = one_array(array)
    return array if array.type == kind else array.cast(kind)


def _without_nan(array: pa.Array) -> pa.Array:
    return pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)


def _in_order(lower: pa.Array, upper: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Drop contradictory pairs of bounds: they would prove that a file has no value although it has rows."""
    crossed = pc.greater(lower, upper)
    if not crossed.true_count:  # counts without a copy, which matters for repeated planning
        return lower, upper
    unknown, mask = pa.scalar(None, lower.type), pc.fill_null(crossed, False)
    return pc.if_else(mask, unknown, lower), pc.if_else(mask, unknown, upper)


def _agreed_uuid_bounds(lower: pa.Array, upper: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Bounds that hold whichever order the writer used.

    Both orders agree on the first half of uuids that have the same first bit. If only the upper bound has the first bit
    set, the writer's order was unsigned. If only the lower bound has the first bit set, the order was signed, and the
    bounds do not hold in the unsigned order.
    """
    low, high = _bytes_of(lower), _bytes_of(upper)
    has_low, has_high = _valid(lower), _valid(upper)
    low_top, high_top = low[:, 0] >= 0x80, high[:, 0] >= 0x80
    both = has_low & has_high
    exact = both & ((low == high).all(axis=1) | (~low_top & high_top))
    agree = both & (low_top == high_top)
    keep_low = exact | agree | (has_low & ~has_high & ~low_top)
    keep_high = exact | agree | (has_high & ~has_low & high_top)
    low[~exact, 8:] = 0x00
    high[~exact, 8:] = 0xFF
    return _fixed_16(low, keep_low), _fixed_16(high, keep_high)


def _bytes_of(array: pa.Array) -> npt.NDArray[np.uint8]:
    """A copy of the bytes of a fixed_size_binary(16) array, one row for each element; undefined for null."""
    data = array.buffers()[1]
    if data is None:
        return np.zeros((len(array), 16), np.uint8)
    whole = np.frombuffer(data, np.uint8)[array.offset * 16 : (array.offset + len(array)) * 16]
    return whole.reshape(len(array), 16).copy()


def _fixed_16(rows: npt.NDArray[np.uint8], valid: Mask) -> pa.Array:
    validity = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    return pa.Array.from_buffers(pa.binary(16), len(rows), [validity, pa.py_buffer(rows.tobytes())])

"""Field summaries: nulls, NaNs and bounds of each partition field over the files of one manifest.

Spec: "Manifest Lists", struct ``field_summary``. Bounds are over values that are neither null nor NaN; where -0.0
occurs the lower bound is not +0.0, and where +0.0 occurs the upper bound is not -0.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.manifest.entries import values_of
from icefield.manifest.manifest_file import FieldSummary
from icefield.types import IcebergType, StructType, UnknownType
from icefield.types.values import to_bytes


class SummaryCollector:
    """Gathers the summaries of a manifest while its entries are written."""

    def __init__(self, partition_type: StructType) -> None:
        self._fields = [_Summary(field.field_type) for field in partition_type.fields]

    def update(self, partition: pa.StructArray) -> None:
        """Take in the partition tuples of some entries."""
        for position, summary in enumerate(self._fields):
            summary.update(partition.field(position))

    def result(self) -> tuple[FieldSummary, ...]:
        """One summary for each field of the spec, in its order."""
        return tuple(summary.result() for summary in self._fields)


class _Summary:
    def __init__(self, kind: IcebergType) -> None:
        self._type = kind
        self._null = False
        self._nan = False
        self._low: Any = None
        self._high: Any = None

    def update(self, values: pa.Array) -> None:
        self._null |= values.null_count > 0
        if pa.types.is_null(values.type):
            return
        values = values.drop_null()
        if pa.types.is_floating(values.type):
            nan = pc.is_nan(values)
            if pc.any(nan).as_py():
                self._nan = True
                values = values.filter(pc.invert(nan))
        if len(values) == 0:
            return
        low, high = _extremes(values)
        if self._low is None or _before(low, self._low):
            self._low = low
        if self._high is None or _before(self._high, high):
            self._high = high

    def result(self) -> FieldSummary:
        if self._low is None or isinstance(self._type, UnknownType):
            return FieldSummary(self._null, self._nan)
        return FieldSummary(self._null, self._nan, to_bytes(self._type, self._low), to_bytes(self._type, self._high))


def _extremes(values: pa.Array) -> tuple[Any, Any]:
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    found = pc.min_max(values)
    low, high = (values_of(pa.array([found[name]], values.type))[0] for name in ("min", "max"))
    if pa.types.is_floating(values.type):
        zeros = np.asarray(values)[np.asarray(values) == 0]
        if low == 0 and len(zeros):
            low = -0.0 if np.signbit(zeros).any() else 0.0
        if high == 0 and len(zeros):
            high = -0.0 if np.signbit(zeros).all() else 0.0
    return low, high


def _before(left: Any, right: Any) -> bool:
    """Strict order, with -0.0 before +0.0."""
    if left == right == 0 and isinstance(left, float):
        return bool(np.signbit(left) and not np.signbit(right))
    return bool(left < right)

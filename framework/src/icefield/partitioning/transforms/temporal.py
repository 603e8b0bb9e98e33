"""``year``, ``month``, ``day`` and ``hour``: whole units since 1970-01-01T00:00 UTC, rounded down.

Timestamps with a zone are transformed on their UTC instant. The results of ``year``, ``month`` and ``hour`` are
ints; that of ``day`` is a date, which is the same number of days.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.base import compute as pc
from icefield.partitioning.transforms.arrays import fixed_values, with_nulls_of
from icefield.partitioning.transforms.base import Transform
from icefield.partitioning.transforms.display import SECONDS_PER_DAY, display_day
from icefield.types import AnyTimestampType, DateType, IcebergType, IntegerType
from icefield.types.values.calendar import date_from_days

_EPOCH_YEAR = 1970
_SECONDS_PER_HOUR = 3600
# Arrow's calendar keeps years in 16 bits.
_ARROW_DAYS = 11_900_000


class TemporalTransform(Transform):
    """The base class of the four temporal transforms, which all preserve order."""

    __slots__ = ()

    preserves_order: ClassVar[bool] = True
    name: ClassVar[str]

    def can_transform(self, source_type: IcebergType) -> bool:
        return isinstance(source_type, DateType | AnyTimestampType)

    def result_type(self, source_type: IcebergType) -> IcebergType:
        return IntegerType()

    def to_display(self, result_type: IcebergType, value: Any) -> str:
        return "null" if value is None else self._human(value)

    @abstractmethod
    def _human(self, value: int) -> str: ...

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class YearTransform(TemporalTransform):
    """Years since 1970 of a date or timestamp."""

    name: ClassVar[str] = "year"

    def _apply(self, array: pa.Array, source_type: IcebergType) -> pa.Array:
        days = _days(array, source_type)
        if _arrow_can(days):
            return pc.subtract(pc.year(days), _EPOCH_YEAR).cast(pa.int32())
        return with_nulls_of(_calendar(days, "Y"), pa.int32(), days)

    def _apply_value(self, value: Any, source_type: IcebergType) -> int:
        return date_from_days(_day(value, source_type))[0] - _EPOCH_YEAR

    def _human(self, value: int) -> str:
        return f"{_EPOCH_YEAR + value:04d}"


@dataclass(frozen=True, slots=True)
class MonthTransform(TemporalTransform):
    """Months since 1970-01 of a date or timestamp."""

    name: ClassVar[str] = "month"

    def _apply(self, array: pa.Array, source_type: IcebergType) -> pa.Array:
        days = _days(array, source_type)
        if _arrow_can(days):
            months = pc.add(pc.multiply(pc.subtract(pc.year(days), _EPOCH_YEAR), 12), pc.subtract(pc.month(days), 1))
            return months.cast(pa.int32())
        return with_nulls_of(_calendar(days, "M"), pa.int32(), days)

    def _apply_value(self, value: Any, source_type: IcebergType) -> int:
        year, month, _ = date_from_days(_day(value, source_type))
        return (year - _EPOCH_YEAR) * 12 + month - 1

    def _human(self, value: int) -> str:
        years, month = divmod(value, 12)
        return f"{_EPOCH_YEAR + years:04d}-{month + 1:02d}"


@dataclass(frozen=True, slots=True)
class DayTransform(TemporalTransform):
    """Days since 1970-01-01 of a date or timestamp, as a date."""

    name: ClassVar[str] = "day"

    def result_type(self, source_type: IcebergType) -> IcebergType:
        return DateType()

    def _apply(self, array: pa.Array, source_type: IcebergType) -> pa.Array:
        return _days(array, source_type)

    def _apply_value(self, value: Any, source_type: IcebergType) -> int:
        return _day(value, source_type)

    def _human(self, value: int) -> str:
        return display_day(value)


@dataclass(frozen=True, slots=True)
class HourTransform(TemporalTransform):
    """Hours since 1970-01-01T00 of a timestamp; beyond the year 246953 they wrap around an int."""

    name: ClassVar[str] = "hour"

    def can_transform(self, source_type: IcebergType) -> bool:
        return isinstance(source_type, AnyTimestampType)

    def _apply(self, array: pa.Array, source_type: IcebergType) -> pa.Array:
        hours = fixed_values(array, np.int64) // (_SECONDS_PER_HOUR * _per_second(source_type))
        return with_nulls_of(hours.astype(np.int32), pa.int32(), array)

    def _apply_value(self, value: Any, source_type: IcebergType) -> int:
        hours: int = value // (_SECONDS_PER_HOUR * _per_second(source_type))
        return (hours + 2**31) % 2**32 - 2**31

    def _human(self, value: int) -> str:
        days, hour = divmod(value, 24)
        return f"{display_day(days)}-{hour:02d}"


def _per_second(source_type: IcebergType) -> int:
    assert isinstance(source_type, AnyTimestampType)
    return int(10**source_type.digits)


def _day(value: int, source_type: IcebergType) -> int:
    return value if isinstance(source_type, DateType) else value // (SECONDS_PER_DAY * _per_second(source_type))


def _days(array: pa.Array, source_type: IcebergType) -> pa.Array:
    """The dates of a column, as date32."""
    if isinstance(source_type, DateType):
        return array
    days = fixed_values(array, np.int64) // (SECONDS_PER_DAY * _per_second(source_type))
    return with_nulls_of(days.astype(np.int32), pa.date32(), array)


def _arrow_can(days: pa.Array) -> bool:
    """Whether Arrow's calendar, ten times as fast as numpy's, holds all of the dates."""
    bounds = pc.min_max(days.view(pa.int32()))
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    return low is None or (low >= -_ARROW_DAYS and high <= _ARROW_DAYS)


def _calendar(days: pa.Array, unit: str) -> npt.NDArray[np.int32]:
    values = fixed_values(days, np.int32).astype("datetime64[D]").astype(f"datetime64[{unit}]")
    return values.astype(np.int64).astype(np.int32)

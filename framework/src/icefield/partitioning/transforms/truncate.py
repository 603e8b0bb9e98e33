"""``truncate[W]``: numbers down to a multiple of W, strings and bytes to their first W."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.base import compute as pc
from icefield.partitioning.transforms.arrays import fixed_values, halves_of, with_nulls_of
from icefield.partitioning.transforms.base import Transform, checked_parameter
from icefield.types import BinaryType, DecimalType, IcebergType, IntegerType, LongType, StringType
from icefield.types.values import decimal_from_unscaled, unscaled

_SOURCES = (IntegerType, LongType, DecimalType, StringType, BinaryType)
_LOW_WORD = np.uint64(0xFFFF_FFFF)
_WORD = np.uint64(32)
_LEAST_LONG = -(2**63)
# So many rows that their two columns of 64-bit halves fit the second-level cache.
_DECIMAL_ROWS = 16_384


@dataclass(frozen=True, slots=True)
class TruncateTransform(Transform):
    """The largest multiple of ``width`` that is not above a number; the first ``width`` code points or bytes.

    For decimals the width counts units of the last digit. Within ``width`` of a type's minimum the multiple does not
    fit: integers then wrap around, as the reference implementation's do, so that stored values agree.
    Raises ``InvalidArgument`` for a width below 1.
    """

    width: int

    preserves_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked_parameter(self.width, "the width of truncation")

    def can_transform(self, source_type: IcebergType) -> bool:
        return isinstance(source_type, _SOURCES)

    def result_type(self, source_type: IcebergType) -> IcebergType:
        return source_type

    def _apply(self, array: pa.Array, source_type: IcebergType) -> pa.Array:
        match source_type:
            case IntegerType():
                return self._integers(array, np.int32)
            case LongType():
                return self._integers(array, np.int64)
            case DecimalType():
                return self._decimals(array)
            case StringType():
                return pc.utf8_slice_codeunits(array, 0, self.width)
        return pc.binary_slice(array, 0, self.width)

    def _apply_value(self, value: Any, source_type: IcebergType) -> Any:
        match source_type:
            case IntegerType():
                return _wrapped(value // self.width * self.width, 32)
            case LongType():
                return _wrapped(value // self.width * self.width, 64)
            case DecimalType():
                number = unscaled(value, source_type.scale) // self.width * self.width
                return decimal_from_unscaled(number, source_type.scale)
        return value[: self.width]

    def _integers(self, array: pa.Array, kind: type[np.signedinteger[Any]]) -> pa.Array:
        multiples = fixed_values(array, kind) // kind(self.width)
        multiples *= kind(self.width)
        return with_nulls_of(multiples, array.type, array)

    def _decimals(self, array: pa.Array) -> pa.Array:
        low, high = halves_of(array)
        pairs = np.empty((len(array), 2), np.uint64)
        for start in range(0, len(array), _DECIMAL_ROWS):
            part = slice(start, start + _DECIMAL_ROWS)
            self._decimal_chunk(low[part].copy(), high[part].copy(), pairs[part])
        return with_nulls_of(pairs, array.type, array)

    def _decimal_chunk(
        self, low: npt.NDArray[np.uint64], high: npt.NDArray[np.int64], pairs: npt.NDArray[np.uint64]
    ) -> None:
        numbers = low.view(np.int64)
        if ((numbers >> 63) == high).all() and numbers.min() >= _LEAST_LONG + self.width:
            numbers //= np.int64(self.width)
            numbers *= np.int64(self.width)
            pairs[:, 0], pairs[:, 1] = low, (numbers >> 63).view(np.uint64)
            return
        remainder = self._remainder(low, high)
        pairs[:, 0] = low - remainder
        pairs[:, 1] = (high - (low < remainder)).view(np.uint64)

    def _remainder(self, low: npt.NDArray[np.uint64], high: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """The non-negative remainder of 128-bit integers, by long division in steps of 32 bits."""
        rest = _modulo(high, np.int64(self.width)).view(np.uint64)
        for digit in (low >> _WORD, low & _LOW_WORD):
            rest <<= _WORD
            rest |= digit
            rest = _modulo(rest, np.uint64(self.width))
        return rest

    def __str__(self) -> str:
        return f"truncate[{self.width}]"


def _wrapped(value: int, bits: int) -> int:
    """The two's complement number in the lowest ``bits`` bits of ``value``."""
    half = 1 << bits - 1
    return (value + half) % (1 << bits) - half


def _modulo(values: npt.NDArray[Any], divisor: Any) -> npt.NDArray[Any]:
    """The remainder of division that rounds down; numpy vectorises division, but not its own remainder."""
    result: npt.NDArray[Any] = values - values // divisor * divisor
    return result

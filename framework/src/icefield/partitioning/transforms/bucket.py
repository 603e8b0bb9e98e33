"""``bucket[N]``: a hash modulo N."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from icefield.partitioning.transforms.arrays import with_nulls_of
from icefield.partitioning.transforms.base import Transform, checked_parameter
from icefield.partitioning.transforms.murmur3 import hash_slots, hash_value
from icefield.types import (
    BooleanType,
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    UnknownType,
)

_NON_NEGATIVE = 0x7FFF_FFFF
_NO_SOURCES = (BooleanType, FloatType, DoubleType, GeometryType, GeographyType, UnknownType)


@dataclass(frozen=True, slots=True)
class BucketTransform(Transform):
    """``(murmur3(value) & 0x7fffffff) mod num_buckets``, an int. Raises ``InvalidArgument`` for a count below 1."""

    num_buckets: int

    def __post_init__(self) -> None:
        checked_parameter(self.num_buckets, "the number of buckets")

    def can_transform(self, source_type: IcebergType) -> bool:
        return source_type.is_primitive and not isinstance(source_type, _NO_SOURCES)

    def result_type(self, source_type: IcebergType) -> IcebergType:
        return IntegerType()

    def _apply(self, array: pa.Array, source_type: IcebergType) -> pa.Array:
        # The sign bit is cleared, because the smallest integer has no absolute value of 32 bits.
        values = hash_slots(array, source_type) & np.int32(_NON_NEGATIVE)
        count = np.int32(self.num_buckets)
        # Division is vectorised by numpy, the remainder is not.
        values -= (values // count) * count
        return with_nulls_of(values, pa.int32(), array)

    def _apply_value(self, value: Any, source_type: IcebergType) -> int:
        hashed = hash_value(source_type, value)
        assert hashed is not None
        return (hashed & _NON_NEGATIVE) % self.num_buckets

    def __str__(self) -> str:
        return f"bucket[{self.num_buckets}]"

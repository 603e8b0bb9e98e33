"""Equality of partition tuples, computed for whole columns at a time: see ``types.arrow.equality``."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.types.arrow.equality import Ints, dense_numbers, joined_numbers, value_numbers

_SMALL: Final = 1 << 16
"""NumPy sorts keys of 16 bits by counting, which is several times as fast as comparing."""


def tuple_keys(tuples: pa.StructArray) -> tuple[npt.NDArray[Any], int]:
    """A number for each tuple, the same for equal tuples, and an upper bound of the numbers.

    The bound is exclusive, and some numbers below it may be unused.
    """
    fields = map(tuples.field, range(tuples.type.num_fields))
    keys, size = joined_numbers(map(value_numbers, fields), len(tuples))
    if size > max(_SMALL, 2 * len(tuples)):
        keys, size = dense_numbers(pa.array(keys))
    return keys.astype(np.uint16 if size <= _SMALL else np.int64, copy=False), size


def tuple_groups(tuples: pa.StructArray) -> tuple[Ints, Ints]:
    """A number from 0 for each tuple, the same for equal tuples, and the first row with each number."""
    keys, _ = tuple_keys(tuples)
    _, rows, numbers = np.unique(keys, return_index=True, return_inverse=True)
    return numbers.astype(np.int64, copy=False), rows.astype(np.int64, copy=False)

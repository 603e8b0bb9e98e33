"""Equal partition tuples found among many, without a Python object for each."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.manifest.entries import partition_tuples, take
from icefield.partitioning.spec import normalised_key

_MANY: Final = 2**62

Ints = npt.NDArray[np.int64]


def partition_groups(partition: pa.StructArray) -> tuple[Ints, Ints]:
    """A number from 0 for each tuple, equal for equal tuples, and for each number the row of one that has it.

    Null equals null. Floats are equal when their bits are, with one NaN, so that 0.0 and -0.0 differ.
    """
    codes = np.zeros(len(partition), np.int64)
    size = 1
    for position in range(partition.type.num_fields):
        of_child, distinct = _codes(partition.field(position))
        if size * distinct >= _MANY:
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
            size = int(codes.max(initial=0)) + 1
        codes = codes * distinct + of_child
        size *= distinct
    _, rows, numbers = np.unique(codes, return_index=True, return_inverse=True)
    return numbers.astype(np.int64, copy=False), rows.astype(np.int64, copy=False)


def partition_keys(spec_id: int, partition: pa.StructArray, rows: Ints) -> list[tuple[Hashable, ...]]:
    """What identifies the partitions of these rows among all files of a table: the spec and the normalised tuple."""
    tuples = partition_tuples(take(partition, pa.array(rows)))
    return [(spec_id, *normalised_key(values)) for values in tuples]


def _codes(values: pa.Array) -> tuple[npt.NDArray[Any], int]:
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.int64), 1
    if pa.types.is_floating(values.type):
        values = _bits(values)
    encoded = values.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), max(1, len(encoded.dictionary))


def _bits(values: pa.Array) -> pa.Array:
    """Floats as the integers that their bits spell, every NaN the same."""
    plain = values.fill_null(0).to_numpy(zero_copy_only=False)
    plain = np.where(np.isnan(plain), np.array(np.nan, plain.dtype), plain)
    bits = plain.view(np.int64 if plain.dtype.itemsize == 8 else np.int32)
    return pa.array(bits, mask=np.asarray(values.is_null()) if values.null_count else None)

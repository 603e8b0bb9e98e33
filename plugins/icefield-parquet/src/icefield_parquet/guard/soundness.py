"""Checks for invalid values: strings that are not UTF-8, decimals and times beyond the range of their type.

pyarrow returns the values of the pages unchecked. Invalid values cause wrong results, or errors far from the file.

Upstream, for strings: https://github.com/apache/arrow/issues/29635. For decimals and times there is none: the
reproducer is a decimal(4, 2) with the stored value 123456, which ``pq.read_table`` returns. The check of a type may go
when pyarrow validates the type while it reads, or can be asked to.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield.toolkit import validate_full


def check_values(array: pa.Array) -> None:
    """Raise ``pa.ArrowInvalid`` where a value, at any depth, is not of its type."""
    kinds, kind = pa.types, array.type
    if kinds.is_string(kind):
        if not _is_ascii(array):
            array.validate(full=True)
    elif kinds.is_decimal(kind):
        if not (kinds.is_decimal128(kind) and _has_few_digits(array)):
            validate_full(array)
    elif kinds.is_time(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind):
        array.validate(full=True)
    elif kinds.is_dictionary(kind):
        check_values(array.dictionary)
        if not _is_within(array.indices, len(array.dictionary)):
            raise pa.ArrowInvalid("a number that is not in its dictionary")
    elif kinds.is_struct(kind):
        for position in range(kind.num_fields):
            check_values(array.field(position))
    elif kinds.is_map(kind):
        check_values(array.keys)
        check_values(array.items)
    elif kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        check_values(array.values)


def _is_within(indices: pa.Array, count: int) -> bool:
    """Whether all indices except nulls are below a count; pyarrow itself does not check indices."""
    found = pc.min_max(indices)
    lowest, highest = found["min"].as_py(), found["max"].as_py()
    return lowest is None or 0 <= lowest <= highest < count


def _is_ascii(array: pa.Array) -> bool:
    """Whether all bytes of strings are ASCII: ten times as fast as a check of UTF-8."""
    _, offsets, data = array.buffers()
    if data is None or not len(array):
        return True
    ends = np.frombuffer(offsets, np.int32, len(array) + 1, array.offset * 4)
    used = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    return not used.size or bool(used.max() < 0x80)


def _has_few_digits(array: pa.Array) -> bool:
    """Whether all numbers are positive and fit their type's precision; negative numbers need a slower check."""
    limit = 10**array.type.precision
    data = array.buffers()[1]
    if limit >= 1 << 63 or data is None or not len(array):
        return False
    words = np.frombuffer(data, np.uint64, 2 * len(array), array.offset * 16)
    return bool(int(words.max()) < limit)

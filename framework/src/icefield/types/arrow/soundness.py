"""Whether the values of an Arrow array are of its type."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.types.arrow.nested import map_entries


def validate_full(array: pa.Array) -> None:
    """Raise ``pa.ArrowInvalid`` where a value, at any depth, is not of the array's type.

    As ``array.validate(full=True)``, plus one decimal that pyarrow accepts wrongly: the least number of 128 or 256
    bits. It has no absolute value, so pyarrow counts few enough digits for any precision.
    """
    array.validate(full=True)
    if _has_decimals(array.type):
        for part in parts_below(array):
            _check_least(part)


def parts_below(array: pa.Array) -> Iterator[pa.Array]:
    """The leaves of a column, without values below nulls. Raises ``ArrowInvalid`` for lists of negative length."""
    if pa.types.is_struct(array.type):
        for part in array.flatten():
            yield from parts_below(part)
    elif pa.types.is_list(array.type) or pa.types.is_map(array.type):
        lists = map_entries(array) if pa.types.is_map(array.type) else array
        if (np.diff(lists.offsets) < 0).any():
            raise pa.ArrowInvalid("offsets that fall")
        yield from parts_below(lists.flatten())
    else:
        yield array


def _has_decimals(kind: pa.DataType) -> bool:
    return pa.types.is_decimal(kind) or any(_has_decimals(kind.field(at).type) for at in range(kind.num_fields))


def _check_least(array: pa.Array) -> None:
    if not pa.types.is_decimal(array.type):
        return
    least = pc.min(array).as_py()
    if least is not None and len(least.as_tuple().digits) > array.type.precision:
        raise pa.ArrowInvalid(f"{least} has more digits than {array.type}")

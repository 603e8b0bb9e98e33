"""Long neighbouring slices of one array are joined without a copy, and all others with a copy."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from icefield.types.arrow.pieces import are_neighbours, joined

ARRAYS = {
    "booleans": pa.array([True, None, False] * 70),
    "integers": pa.array([1, None, 2] * 70),
    "strings": pa.array(["x", None, "yz"] * 70),
    "counts": pa.array([[(1, 5)], None, []] * 70, pa.map_(pa.int32(), pa.int64())),
    "bounds": pa.array([[(1, b"a"), (2, None)], None, [(3, b"bc")]] * 70, pa.map_(pa.int32(), pa.binary())),
    "lists": pa.array([[1, 2], None, [3]] * 70),
    "structs": pa.array([{"a": 1}, None, {"a": None}] * 70),
}


def addresses(array: Any) -> list[int | None]:
    parts = [array, array.keys, array.items] if pa.types.is_map(array.type) else [array]
    return [None if buffer is None else buffer.address for part in parts for buffer in part.buffers()]


@pytest.mark.parametrize("name", ARRAYS)
def test_slices_become_what_they_were_cut_from(name: str) -> None:
    array = ARRAYS[name]
    parts = [array.slice(3, 64), array.slice(67, 80), array.slice(147)]
    found = joined(parts)
    found.validate(full=True)
    assert found.type == array.type
    assert found.equals(array.slice(3))
    assert found.null_count == array.slice(3).null_count
    copied = name in ("lists", "structs")
    assert (addresses(found) == addresses(array)) is not copied
    assert are_neighbours(parts[0], parts[1]) is not copied
    few = [array.slice(3, 4), array.slice(7, 5), array.slice(12, 1)]  # a copy costs less than the comparison
    assert joined(few).equals(array.slice(3, 10))
    assert addresses(joined(few)) != addresses(array)


@pytest.mark.parametrize("name", ARRAYS)
def test_what_is_cut_from_elsewhere_or_comes_in_another_order_is_copied(name: str) -> None:
    array = ARRAYS[name]
    other = pa.concat_arrays([array])
    for parts in (
        [array.slice(7, 5), array.slice(3, 4)],
        [array.slice(3, 4), array.slice(8, 2)],
        [array.slice(0, 7), other.slice(7)],
        [array.slice(2, 0), array.slice(5, 1)],
    ):
        found = joined(parts)
        found.validate(full=True)
        assert found.to_pylist() == [value for part in parts for value in part.to_pylist()]

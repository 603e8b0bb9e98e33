"""Statistics maps are split into one column for each key, for every layout of the maps."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.manifest import ManifestEntries, ManifestFile
from icefield.manifest.columns import MAP_TYPES
from icefield.manifest.schemas import LOWER_BOUNDS, VALUE_COUNTS
from icefield.manifest.statistics import map_column, map_columns
from icefield.types import IntegerType, LongType, StringType
from icefield.types.values.binary_arrays import from_bytes_array

KEYS = st.integers(1, 4)
IRREGULAR = st.lists(st.none() | st.lists(KEYS, max_size=4), max_size=6)
REGULAR = st.tuples(st.lists(KEYS, min_size=1, max_size=4), st.integers(1, 6)).map(lambda one: [one[0]] * one[1])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (MAP_TYPES[VALUE_COUNTS], lambda number: number),
        (MAP_TYPES[LOWER_BOUNDS], lambda number: b"x" * (number % 3)),
        (MAP_TYPES[LOWER_BOUNDS], lambda number: number.to_bytes(8, "little")),
    ],
    ids=["counts", "bounds", "bounds of one length"],
)
@given(keys=IRREGULAR | REGULAR, cut=st.integers(0, 3))
def test_columns_of_several_keys_are_those_of_each_key(kind: Any, value: Any, keys: Any, cut: int) -> None:
    rows = [
        None if row is None else [(key, value(10 * number + place)) for place, key in enumerate(row)]
        for number, row in enumerate(keys)
    ]
    maps = pa.array(rows, kind).slice(cut)
    found = map_columns(maps, [1, 2, 5])
    for key, column in found.items():
        alone = map_column(maps, key)
        assert (column is None) == (alone is None)
        wanted = [None if row is None else dict(row).get(key) for row in rows[cut:]]
        if column is None:
            assert wanted == [None] * len(maps)
        else:
            assert column.to_pylist() == alone.to_pylist() == wanted


@pytest.mark.parametrize("value", [1, None])
def test_maps_with_the_same_keys_are_not_searched_one_by_one(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def searched(*_: Any) -> None:
        raise AssertionError("a map was searched")

    monkeypatch.setattr("icefield.manifest.statistics.map_column", searched)
    found = map_columns(pa.array([[(1, 5), (2, value)]] * 3, MAP_TYPES[VALUE_COUNTS]), [2])
    assert [column.to_pylist() for column in found.values() if column is not None] == [[value] * 3]


def test_bounds_of_several_fields_are_those_of_each_field() -> None:
    """Fields of one type are decoded together: missing bounds, and those from before a promotion, stay in place."""
    types = {1: LongType(), 2: LongType(), 3: StringType(), 4: LongType(), 5: IntegerType()}
    encoded = [
        {1: b"\1" + bytes(7), 2: b"\2" + bytes(3), 3: b"a", 5: b"\5" + bytes(3)},
        {1: b"\6" + bytes(7), 2: b"wrong", 3: b"\xff", 5: b"\7" + bytes(3)},
        {2: b"\3" + bytes(7)},
    ]
    maps = pa.array([list(one.items()) for one in encoded], MAP_TYPES[LOWER_BOUNDS])
    manifest = ManifestFile(manifest_path="m", manifest_length=0, added_snapshot_id=1)
    one, other = (ManifestEntries(manifest, 3, {LOWER_BOUNDS: maps}) for _ in range(2))
    one.gather_bounds(LOWER_BOUNDS, types, from_bytes_array)
    gathered, each = (
        [entries.bound(LOWER_BOUNDS, number, kind, decode) for number, kind in types.items()]
        for entries, decode in ((one, _undecoded), (other, from_bytes_array))
    )
    assert gathered == each
    assert gathered[0].to_pylist() == [1, 6, None]
    assert gathered[1].to_pylist() == [2, None, 3]
    assert gathered[3] is None


def _undecoded(kind: Any, array: pa.Array) -> pa.Array:
    raise AssertionError(f"{kind} is decoded again")

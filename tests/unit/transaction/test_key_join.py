"""Joins on keys, checked by comparing each row with each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.transaction.row_level import key_join
from icefield.transaction.row_level.key_join import Keys

FLOATS = st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.5])
KINDS = {
    "int": (pa.int32(), st.integers(-3, 3) | st.sampled_from([-(1 << 31), (1 << 31) - 1])),
    "long": (pa.int64(), st.integers(-3, 3) | st.sampled_from([-(1 << 63), (1 << 63) - 1])),
    "date": (pa.date32(), st.integers(-3, 3)),
    "time": (pa.time64("us"), st.integers(0, 3)),
    "timestamp": (pa.timestamp("us", "UTC"), st.integers(-3, 3)),
    "nanos": (pa.timestamp("ns"), st.integers(-3, 3)),
    "float": (pa.float32(), FLOATS),
    "double": (pa.float64(), FLOATS),
    "string": (pa.string(), st.sampled_from(["", "a", "b"])),
}


def table(kinds: list[str], keys: list[tuple[Any, ...]]) -> pa.Table:
    columns = [list(column) for column in zip(*keys, strict=True)] or [[] for _ in kinds]
    arrays = [
        pa.array(column, pa.int64()).cast(KINDS[kind][0]) if kind in ("timestamp", "nanos") else _array(kind, column)
        for kind, column in zip(kinds, columns, strict=True)
    ]
    return pa.table(arrays, names=[f"k{at}" for at in range(len(kinds))])


def _array(kind: str, column: list[Any]) -> pa.Array:
    if kind in ("date", "time"):
        return pa.array(column, pa.int32() if kind == "date" else pa.int64()).view(KINDS[kind][0])
    return pa.array(column, KINDS[kind][0])


@st.composite
def joins(draw: st.DrawFn) -> tuple[pa.Table, pa.RecordBatch, list[tuple[int, int]]]:
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3))
    one = st.tuples(*(st.none() | KINDS[kind][1] for kind in kinds))
    own, here = draw(st.lists(one, max_size=12)), draw(st.lists(one, max_size=12))
    pairs = [(i, j) for i, a in enumerate(here) for j, b in enumerate(own) if _equal(a, b)]
    (batch,) = table(kinds, here).combine_chunks().to_batches() or [
        pa.RecordBatch.from_pylist([], schema=table(kinds, []).schema)
    ]
    return table(kinds, own), batch, pairs


def _equal(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Null equals nothing; NaN equals NaN."""
    return all(a is not None and (a == b or (a != a and b != b)) for a, b in zip(one, other, strict=True))


@given(joins())
@settings(max_examples=300)
def test_every_pair_of_equal_keys_is_found(case: tuple[pa.Table, pa.RecordBatch, list[tuple[int, int]]]) -> None:
    own, batch, expected = case
    here, given = Keys(own, own.column_names).join(batch)
    assert sorted(zip(here.tolist(), given.tolist(), strict=True)) == expected
    assert np.all(here[1:] >= here[:-1])


def test_keys_with_one_hash_are_told_apart_by_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_join, "_MIX", np.uint64(0))
    own = table(["long", "int"], [(1, 1), (2, 1), (1, 2), (None, 1)])
    (batch,) = table(["long", "int"], [(1, 2), (None, 1), (2, 2), (2, 1)]).to_batches()
    here, given = Keys(own, own.column_names).join(batch)
    assert list(zip(here.tolist(), given.tolist(), strict=True)) == [(0, 2), (3, 1)]

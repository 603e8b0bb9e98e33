"""Which rows of a table may meet a row of a merge's source: decided in Arrow, without Spark."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield_spark.keys import KeyFilter
from icefield_spark.places import among

NUMBERS = st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1))
SMALL = st.one_of(st.integers(-5, 5), st.integers(-(2**31), 2**31 - 1))
STRINGS = st.text(max_size=2)


@pytest.mark.parametrize(("kind", "values"), [(pa.int64(), NUMBERS), (pa.int32(), SMALL), (pa.string(), STRINGS)])
def test_a_row_may_meet_one_exactly_where_its_key_is_one_of_the_keys(kind: Any, values: Any) -> None:
    @given(st.lists(values, unique=True, max_size=8), st.lists(st.one_of(st.none(), values), max_size=20))
    def agrees(keys: list[Any], rows: list[Any]) -> None:
        kept = pickle.loads(pickle.dumps(KeyFilter("k", pa.array(keys, kind))))
        batch = pa.RecordBatch.from_pydict({"k": pa.array(rows, kind)})
        assert kept.mask(batch).to_pylist() == [row is not None and row in keys for row in rows]

    agrees()


@given(st.sets(st.integers(0, 60)), st.sets(st.integers(0, 60)))
def test_positions_of_a_batch_are_found_among_others(batch: set[int], others: set[int]) -> None:
    positions, some = np.array(sorted(batch), np.int64), np.array(sorted(others), np.int64)
    assert among(positions, some).tolist() == [each in others for each in sorted(batch)]

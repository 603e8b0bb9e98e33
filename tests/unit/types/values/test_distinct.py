"""Numbers, each once and in order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.types.values import distinct


@given(st.lists(st.lists(st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=3))
def test_each_number_that_occurs_comes_once_in_order(parts: list[list[int]]):
    found = distinct(*(np.array(part, np.int64) for part in parts))
    assert found.tolist() == sorted({number for part in parts for number in part})
    assert found.dtype == np.int64


@pytest.mark.parametrize("numbers", [[], [2**64 - 1, 0, 2**64 - 1]])
def test_numbers_without_a_sign_stay_so(numbers: list[int]):
    found = distinct(np.array(numbers, np.uint64))
    assert (found.dtype, found.tolist()) == (np.uint64, sorted(set(numbers)))

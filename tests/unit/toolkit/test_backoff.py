"""The growth of waits, and their limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.toolkit import Backoff


def test_waits_double_up_to_a_limit() -> None:
    backoff = Backoff(0.1, 1.0, jitter=0)
    assert list(backoff.waits(6)) == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


@given(st.integers(1, 100_000), st.floats(0.001, 1), st.floats(1, 100), st.floats(1, 5), st.floats(0, 1))
def test_a_wait_is_between_its_random_part_and_the_limit(
    retry: int, least: float, most: float, growth: float, jitter: float
) -> None:
    backoff = Backoff(least, most, growth, jitter)
    longest = backoff.longest(retry)
    assert least * 0.999 <= longest <= most
    assert longest * (1 - jitter) * 0.999 <= backoff.wait(retry) <= longest * 1.001

"""Twice the columns of a view or a statement take about twice the CPU time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from growth import MOST_GROWTH, Work, growth
from icefield_spark.sql.columns import spellings
from icefield_spark.sql.view_rows import places_of

pytestmark = pytest.mark.slow


def names(count: int) -> list[str]:
    return [f"c{number}" for number in range(count)]


def in_another_order(count: int) -> Work:
    return placing(names(count)[::-1], names(count), ",".join(names(count)))


def twice_the_same_names(count: int) -> Work:
    stated = [f"v{number}" for number in range(2 * count)]
    return placing([*names(count), *names(count)], stated, ",".join([*names(count), *names(count)]))


def of_one_name(count: int) -> Work:
    return placing(["c"] * count, names(count), ",".join(["c"] * count))


def without_former_names(count: int) -> Work:
    return placing(names(count), names(count), None)


def spelling_columns(count: int) -> Work:
    return lambda: spellings(names(count), [name.upper() for name in names(count)], str.lower)


def placing(given: Sequence[str], stated: Sequence[str], made_from: str | None) -> Work:
    return lambda: places_of("v", given, stated, made_from, str.lower)


SHAPES: dict[Callable[[int], Work], int] = {
    in_another_order: 1000,
    twice_the_same_names: 1000,
    of_one_name: 1000,
    without_former_names: 1000,
    spelling_columns: 1000,
}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_twice_the_columns_take_about_twice_the_time(shape: Callable[[int], Work]) -> None:
    assert growth(shape, SHAPES[shape]) <= MOST_GROWTH

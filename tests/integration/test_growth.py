"""Twice the columns, partitions, snapshots, deletes, branches or edits take about twice the CPU time, never four times.

Each shape prepares an input of a size and returns the work that is timed. ``growth`` compares n with 2n.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from growth import MOST_GROWTH, Work, growth
from icefield.catalog import Table
from icefield.toolkit import conform, prune_batch
from tables import new_table

pytestmark = pytest.mark.slow

BATCHES = 10


def names(count: int) -> list[str]:
    return [f"c{number}" for number in range(count)]


def wide_schema(columns: int) -> pa.Schema:
    return pa.schema([(name, pa.int64()) for name in names(columns)])


def wide_batch(columns: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([1, 2], pa.int64())] * columns, schema=wide_schema(columns))


def wide_table(columns: int, rows: int = 0, **properties: str) -> Table:
    table = new_table(schema=wide_schema(columns), **properties)
    for _ in range(rows):
        table.append(wide_batch(columns))
    return table


# Columns.


def appending_batches(columns: int) -> Work:
    table, batch = wide_table(columns), wide_batch(columns)
    return lambda: table.append(iter([batch] * BATCHES))


def pruning_batches(columns: int) -> Work:
    batch = wide_batch(columns)
    wanted = batch.schema.remove_metadata()
    return lambda: [prune_batch(batch, wanted) for _ in range(BATCHES)]


def conforming_batches(columns: int) -> Work:
    batch = wide_batch(columns)
    return lambda: [conform(batch, batch.schema) for _ in range(BATCHES)]


COLUMNS = {appending_batches: 400, pruning_batches: 400, conforming_batches: 400}


@pytest.mark.parametrize("shape", COLUMNS, ids=lambda shape: shape.__name__)
def test_twice_the_columns_take_about_twice_the_time(shape) -> None:
    assert growth(shape, COLUMNS[shape]) <= MOST_GROWTH


def test_work_whose_time_grows_with_the_square_is_told_apart() -> None:
    def looking_at_all_for_each(size: int) -> Work:
        batch = wide_batch(size)
        return lambda: [batch.columns[place] for place in range(size)]

    assert growth(looking_at_all_for_each, 200) > MOST_GROWTH

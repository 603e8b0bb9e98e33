"""Rows are brought under the table's schema once, also where they are sorted or joined before they are written."""

from __future__ import annotations

import pyarrow as pa
import pytest
from icefield.engine import Conforming
from tables import ids, new_table, rows


@pytest.fixture
def applied(monkeypatch):
    """The rows of each batch that is brought under a schema."""
    counts: list[int] = []
    original = Conforming.apply

    def apply(self, batch):
        counts.append(batch.num_rows)
        return original(self, batch)

    monkeypatch.setattr(Conforming, "apply", apply)
    return counts


def test_of_a_sorted_table(applied):
    table = new_table()
    table.update_sort_order().desc("id").commit()
    table.append(pa.concat_tables([rows([1, 5]), rows([3, 2, 4])]))
    assert applied == [2, 3]
    assert table.scan().to_arrow()["id"].to_pylist() == [5, 4, 3, 2, 1]


def test_of_a_sorted_table_without_rows(applied):
    table = new_table()
    table.update_sort_order().asc("id").commit()
    table.append(rows([]))
    assert sum(applied) == 0
    assert ids(table) == []


def test_of_rows_that_an_upsert_adds(applied):
    table = new_table()
    table.upsert(rows([1, 2, 3]), ["id"])
    assert applied == [3]
    assert ids(table) == [1, 2, 3]

"""Staged snapshots in one catalog: PyIceberg reads and publishes those of Icefield, and the reverse."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa
import pytest
from icefield import load_catalog
from icefield.errors import NoSuchSnapshot

pyiceberg_catalogs = pytest.importorskip("pyiceberg.catalog")

ONE, TWO, THREE = (pa.table({"id": pa.array([number], pa.int64())}) for number in (1, 2, 3))


@pytest.fixture
def both(tmp_path):
    """The same table, with one row, as Icefield's and as PyIceberg's."""
    place = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    with load_catalog("test", **place) as catalog:
        catalog.create_namespace("db")
        ours = catalog.create_table("db.t", ONE.schema)
        ours.append(ONE)
        with closing(pyiceberg_catalogs.load_catalog("test", **place)) as theirs:
            yield ours, theirs.load_table("db.t")


def state(table):
    """The state of a table that staging must not change, in either implementation."""
    head = table.current_snapshot()
    refs = table.refs() if callable(table.refs) else table.refs
    return head.snapshot_id, {name: ref.snapshot_id for name, ref in refs.items()}, len(table.history())


def numbers(table, **kwargs):
    return sorted(table.scan(**kwargs).to_arrow()["id"].to_pylist())


def test_no_branch_means_the_same_in_both(both):
    ours, theirs = both
    before = state(ours)
    theirs.append(TWO, branch=None)
    ours.refresh()
    assert state(ours) == before
    ours.append(THREE, branch=None)
    assert state(ours) == before == state(theirs.refresh())
    parents = [snapshot.parent_snapshot_id for snapshot in ours.snapshots()]
    assert parents == [None, before[0], before[0]]
    assert [snapshot.summary["operation"] for snapshot in ours.snapshots()] == ["append"] * 3
    by_them, by_us = (snapshot.snapshot_id for snapshot in ours.snapshots()[1:])
    assert numbers(ours, snapshot_id=by_them) == numbers(theirs, snapshot_id=by_them) == [1, 2]
    assert numbers(ours, snapshot_id=by_us) == numbers(theirs, snapshot_id=by_us) == [1, 3]
    ours.manage_snapshots().cherry_pick(by_them).cherry_pick(by_us).commit()
    assert numbers(ours) == numbers(theirs.refresh()) == [1, 2, 3]
    theirs.append(ONE)
    assert numbers(ours.refresh()) == [1, 1, 2, 3]


def test_a_branch_that_is_not_there_is_created_by_them_without_the_rows_of_main_and_refused_here(both):
    """The reason why a commit creates no branch: a branch that PyIceberg creates lacks the rows of the table."""
    ours, theirs = both
    theirs.append(TWO, branch="misspelt")
    assert numbers(ours.refresh(), ref="misspelt") == [2]
    with pytest.raises(NoSuchSnapshot, match="was 'misspelt' meant"):
        ours.append(TWO, branch="mispelt")

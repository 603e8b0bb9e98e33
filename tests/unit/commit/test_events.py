"""Events of commits, and commits to tables that were dropped meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from icefield.abc import CommitConflict, CommitMade, OperationFinished
from icefield.errors import CommitStateUnknown
from tables import Listener, around, meddled, memory_catalog, new_table, rows


def test_listeners_hear_of_conflicts_and_of_the_commit():
    listener = Listener()
    table = new_table(catalog=memory_catalog(listener))
    listener.events.clear()
    holder = meddled(table, lambda other: other.append(rows([1])))
    holder.append(rows([2]))
    (conflict,) = listener.of(CommitConflict)
    assert (conflict.table, conflict.attempt) == (("db", "t"), 1)
    assert conflict.base_location.endswith("v1.metadata.json")
    first, second = listener.of(CommitMade)
    assert (first.attempts, second.attempts) == (1, 2)
    assert second.snapshot_id == holder.current_snapshot().snapshot_id
    assert second.operation == "append"
    assert second.metadata_location == holder.metadata_location
    assert second.sequence_number == 2
    assert second.summary["total-records"] == "2"
    assert (second.location, second.schema) == (holder.location(), holder.schema())
    listener.events.clear()
    holder.set_properties(a="1")
    (changed,) = listener.of(CommitMade)
    assert (changed.snapshot_id, changed.operation, changed.sequence_number, changed.summary) == (None, None, None, {})
    assert dict(listener.of(OperationFinished)[-1].updates) == {"a": "1"}


def test_an_exception_after_the_table_was_dropped_leaves_the_outcome_unknown():
    catalog = memory_catalog()
    table = new_table(catalog=catalog)

    def drop(attempt: int) -> Any:
        catalog.drop_table("db.t")
        raise RuntimeError("a bug")

    with pytest.raises(CommitStateUnknown):
        around(table, before=drop).append(rows([1]))

"""Taking over the appends of another branch."""

from __future__ import annotations

import pytest
from icefield.errors import InvalidArgument, NoSuchSnapshot
from tables import ids, meddled, new_table, orphans, rows


@pytest.fixture
def table():
    found = new_table()
    found.append(rows([1]))
    found.manage_snapshots().create_branch(found.current_snapshot().snapshot_id, "audit").commit()
    found.append(rows([2]), branch="audit", snapshot_properties={"wap.id": "w1"})
    found.append(rows([3]))
    return found


@pytest.mark.spec("SNAP-22", "REF-10")
def test_an_append_of_another_branch_is_taken_over_under_its_name(table):
    source = table.refs()["audit"].snapshot_id
    holder = meddled(table, lambda other: other.append(rows([4])))
    holder.update_snapshot().cherry_pick(source).commit()
    assert ids(holder) == [1, 2, 3, 4]
    summary = holder.current_snapshot().summary
    assert (summary["source-snapshot-id"], summary["published-wap-id"]) == (str(source), "w1")
    assert ids(holder, ref="audit") == [1, 2]
    assert orphans(table) == set()
    with pytest.raises(InvalidArgument, match="picked before"):
        holder.update_snapshot().cherry_pick(source).commit()


@pytest.mark.spec("REF-10")
def test_what_cannot_be_picked_is_refused(table):
    with pytest.raises(NoSuchSnapshot):
        table.update_snapshot().cherry_pick(42).commit()
    with pytest.raises(InvalidArgument, match="already"):
        table.update_snapshot().cherry_pick(table.snapshots()[0].snapshot_id).commit()
    table.delete("id = 2", branch="audit")
    with pytest.raises(InvalidArgument, match="only an append"):
        table.update_snapshot().cherry_pick(table.refs()["audit"].snapshot_id).commit()
    assert ids(table.refresh()) == [1, 3]

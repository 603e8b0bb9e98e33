"""``table.undo``, ``table.rollback`` and ``table.diff``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from icefield import Catalog, Table
from icefield.errors import InvalidArgument, NoSuchSnapshot, ValidationFailed
from tables import memory_catalog


@pytest.fixture
def catalog() -> Catalog:
    return memory_catalog()


@pytest.fixture
def table(catalog: Catalog) -> Table:
    table = catalog.create_table_as("db.t", {"id": [1, 2, 3], "kind": ["a", "b", "c"]})
    table.update("id = 2", {"kind": "z"})
    table.delete("id = 3")
    table.append({"id": [4], "kind": ["d"]})
    return table


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def snapshot(table: Table, number: int) -> int:
    return table.snapshots()[number].snapshot_id


def changes(found: Any) -> list[tuple[Any, ...]]:
    return [(row["_change_type"], row["id"], row["kind"]) for row in found.to_pylist()]


# -- undo


def test_undo_takes_the_newest_change_back(table: Table) -> None:
    assert table.undo().snapshot_id == snapshot(table, 3)
    assert ids(table) == [1, 2]
    assert table.undo().snapshot_id == snapshot(table, 2)
    assert ids(table) == [1, 2, 3]


def test_undo_of_a_branch_leaves_main(table: Table) -> None:
    table.manage_snapshots().create_branch(None, "audit").commit()
    table.append({"id": [5]}, branch="audit")
    table.undo("audit")
    assert table.snapshot_by_name("audit") == table.current_snapshot()


def test_undo_spares_the_commit_of_another_writer(catalog: Catalog, table: Table) -> None:
    catalog["db.t"].append({"id": [9]})
    with pytest.raises(ValidationFailed, match="another commit"):
        table.undo()
    assert ids(table.refresh()) == [1, 2, 4, 9]


def test_undo_of_the_first_snapshot_says_how_its_rows_go(catalog: Catalog) -> None:
    first = catalog.create_table_as("db.u", {"id": [1]})
    with pytest.raises(NoSuchSnapshot, match=r"is the first one; delete\(\) removes its rows"):
        first.undo()
    empty = catalog.create_table("db.v", first.schema())
    with pytest.raises(NoSuchSnapshot, match="has no snapshot to undo"):
        empty.undo()


# -- rollback


def test_rollback_goes_to_a_snapshot_a_tag_or_a_time(table: Table) -> None:
    table.manage_snapshots().create_tag(snapshot(table, 1), "before").commit()
    assert table.rollback("before").snapshot_id == snapshot(table, 1)
    assert ids(table) == [1, 2, 3]
    table.rollback(snapshot(table, 0))
    assert table.metadata.current_snapshot_id == snapshot(table, 0)


def test_rollback_goes_back_to_a_time(table: Table) -> None:
    newest = table.snapshots()[3].timestamp_ms
    found = table.rollback(as_of=newest)
    assert found == table.current_snapshot()
    assert found.timestamp_ms < newest


def test_rollback_refuses_other_versions(table: Table) -> None:
    head = snapshot(table, 3)
    table.undo()
    with pytest.raises(InvalidArgument, match="no ancestor"):
        table.rollback(head)
    for wrong in ("nowhere", 5):
        with pytest.raises(NoSuchSnapshot, match=r"table db\.t has no snapshot, branch or tag"):
            table.rollback(wrong)
    with pytest.raises(InvalidArgument, match="a rollback goes to"):
        table.rollback()


# -- diff


def test_a_diff_by_key_shows_updates(table: Table) -> None:
    found = changes(table.diff(snapshot(table, 0), key="id"))
    assert sorted(found, key=lambda row: (row[1], row[0] == "UPDATE_AFTER")) == [
        ("UPDATE_BEFORE", 2, "b"),
        ("UPDATE_AFTER", 2, "z"),
        ("DELETE", 3, "c"),
        ("INSERT", 4, "d"),
    ]


def test_a_diff_without_a_key_shows_deleted_and_inserted_rows(table: Table) -> None:
    found = changes(table.diff(snapshot(table, 0), snapshot(table, 3)))
    assert sorted(found) == [("DELETE", 2, "b"), ("DELETE", 3, "c"), ("INSERT", 2, "z"), ("INSERT", 4, "d")]


def test_a_diff_backwards_is_the_reverse(table: Table) -> None:
    found = changes(table.diff("main", snapshot(table, 0), key=["id"]))
    assert sorted(found) == [
        ("DELETE", 4, "d"),
        ("INSERT", 3, "c"),
        ("UPDATE_AFTER", 2, "b"),
        ("UPDATE_BEFORE", 2, "z"),
    ]
    kinds = [kind for kind, *_ in found]
    assert kinds.index("UPDATE_AFTER") == kinds.index("UPDATE_BEFORE") + 1


def test_a_version_equals_itself(table: Table) -> None:
    assert table.diff("main", "main").num_rows == 0


def test_a_diff_leaves_out_changes_that_were_undone(table: Table) -> None:
    before = snapshot(table, 3)
    table.append({"id": [7], "kind": ["x"]})
    table.delete("id = 7")
    assert table.diff(before, key="id").num_rows == 0


def test_a_branch_is_compared_with_main(table: Table) -> None:
    table.manage_snapshots().create_branch(None, "audit").commit()
    table.append({"id": [5], "kind": ["e"]}, branch="audit")
    assert changes(table.diff("main", "audit")) == [("INSERT", 5, "e")]
    assert changes(table.diff("audit", "main")) == [("DELETE", 5, "e")]


def test_ids_of_a_data_frame_are_no_times(table: Table) -> None:
    first = np.int64(snapshot(table, 0))
    assert table.diff(first) == table.diff(int(first))
    assert table.rollback(first).snapshot_id == first
    assert ids(table) == [1, 2, 3]


def test_diverged_versions_are_refused_with_their_common_ancestor(table: Table) -> None:
    common = snapshot(table, 3)
    table.manage_snapshots().create_branch(None, "audit").commit()
    table.append({"id": [5]}, branch="audit")
    table.append({"id": [6]})
    with pytest.raises(InvalidArgument, match=f"compare each of them with {common}"):
        table.diff("audit", "main")

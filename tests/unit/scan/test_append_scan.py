"""Incremental append scans: their files and snapshots, their schema, and the possible starts of a range."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from icefield.catalog import Table
from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.expressions import EqualTo
from icefield.metadata.updates.snapshots import RemoveSnapshots
from icefield.scan import read_tasks
from icefield.transaction import Action, Changes
from tables import memory_catalog, new_table, rows


def appended(table: Table, *args: Any, **given: Any) -> list[int]:
    return sorted(table.incremental_append_scan(*args, **given).to_arrow()["id"].to_pylist())


def with_history(**given: Any) -> tuple[Table, list[int]]:
    """Three appends, an overwrite of a part between the second and the third, and a delete at the end."""
    table = new_table(**given)
    table.append(rows([1, 2]))
    table.append(rows([3, 4]))
    table.overwrite(rows([30]), "id = 3")
    table.append(rows([5, 6]))
    table.delete("id = 5")
    return table, [snapshot.snapshot_id for snapshot in table.snapshots()]


@pytest.mark.spec("SCAN-50")
@pytest.mark.parametrize("merge_after", ["1", "100"])
def test_only_files_that_appends_of_the_range_added_are_read(merge_after: str) -> None:
    table, (first, second, overwrite, third, delete) = with_history(
        properties={"commit.manifest.min-count-to-merge": merge_after}
    )
    assert appended(table) == [1, 2, 3, 4, 5, 6]
    assert appended(table, from_snapshot_id_exclusive=first) == [3, 4, 5, 6]
    assert appended(table, from_snapshot_id_inclusive=second, to_snapshot_id_inclusive=overwrite) == [3, 4]
    assert appended(table, from_snapshot_id_exclusive=overwrite) == [5, 6]
    assert appended(table, from_snapshot_id_exclusive=third) == []
    assert appended(table, from_snapshot_id_exclusive=delete) == []
    assert appended(table, to_snapshot_id_inclusive=first) == [1, 2]


def test_a_range_follows_a_branch_a_tag_or_times() -> None:
    table, (first, second, *_) = with_history()
    with table.manage_snapshots() as manage:
        manage.create_branch(second, "dev").create_tag(first, "one")
    table.append(rows([7]), branch="dev")
    assert appended(table, ref="dev", from_snapshot_id_exclusive=first) == [3, 4, 7]
    assert appended(table, ref="one") == [1, 2]
    times = [table.metadata.snapshot_by_id(one).timestamp_ms for one in (first, second)]  # type: ignore[union-attr]
    assert times[0] < times[1]
    assert appended(table, from_timestamp=times[0], to_timestamp=times[1]) == [3, 4]
    assert appended(table, from_timestamp=datetime.fromtimestamp(times[1] / 1000, UTC)) == [5, 6]
    assert appended(table, to_timestamp=times[0] - 1) == []
    with pytest.raises(InvalidArgument, match="not in the history of 'one'"):
        appended(table, ref="one", to_snapshot_id_inclusive=second)
    with pytest.raises(NoSuchSnapshot, match="no branch or tag 'dve'; was 'dev' meant"):
        appended(table, ref="dve")


@pytest.mark.spec("SCAN-51")
def test_a_range_begins_with_an_ancestor_of_its_end() -> None:
    table, (first, second, _, third, _) = with_history()
    with table.manage_snapshots() as manage:
        manage.create_branch(first, "dev")
    table.append(rows([7]), branch="dev")
    aside = table.metadata.snapshot_by_name("dev")
    assert aside is not None
    for begin in ("from_snapshot_id_exclusive", "from_snapshot_id_inclusive"):
        with pytest.raises(InvalidArgument, match=f"{third}, with which the range begins, is no ancestor of {second}"):
            appended(table, **{begin: third}, to_snapshot_id_inclusive=second)
        with pytest.raises(InvalidArgument, match="is no ancestor"):
            appended(table, **{begin: aside.snapshot_id})
        with pytest.raises(NoSuchSnapshot, match="no snapshot 77, with which the range begins"):
            appended(table, **{begin: 77})
    with pytest.raises(NoSuchSnapshot, match="no snapshot 77, with which the range ends"):
        appended(table, to_snapshot_id_inclusive=77)
    with pytest.raises(InvalidArgument, match="2 times by its 'from'"):
        appended(table, from_snapshot_id_exclusive=first, from_snapshot_id_inclusive=first)


@pytest.mark.spec("SCAN-51")
def test_a_range_whose_beginning_has_expired_is_refused() -> None:
    table, (first, second, overwrite, *_) = with_history()
    begun = table.metadata.snapshot_by_id(first)
    assert begun is not None
    expire(table, first, second)
    with pytest.raises(NoSuchSnapshot, match=f"no snapshot {first}, with which the range begins"):
        appended(table, from_snapshot_id_exclusive=first)
    with pytest.raises(NoSuchSnapshot, match=f"no snapshot {second}, with which the range begins"):
        appended(table, from_snapshot_id_inclusive=second)
    with pytest.raises(NoSuchSnapshot, match="has expired, and with it the changes after"):
        appended(table, from_timestamp=begun.timestamp_ms)
    # The start before the oldest kept snapshot may have expired, because the range itself is complete.
    assert appended(table, from_snapshot_id_exclusive=second) == [5, 6]
    assert appended(table, from_snapshot_id_inclusive=overwrite) == [5, 6]
    assert appended(table) == [5, 6]


def expire(table: Table, *snapshot_ids: int) -> None:
    class Expire(Action):
        def apply(self, base: Any, context: Any) -> Changes:
            return Changes((RemoveSnapshots(tuple(snapshot_ids)),))

    Expire(table.stage).commit()


def test_rows_come_under_the_current_schema_filtered_projected_and_limited() -> None:
    table, (first, *_) = with_history(partition_spec=["kind"])
    with table.update_schema() as update:
        update.add_column("extra", "int").rename_column("value", "worth")
    table.append(pa.table({"id": [8], "kind": ["b"], "worth": [2.0], "extra": pa.array([1], pa.int32())}))
    scan = table.incremental_append_scan("id > 3", ("id", "worth", "extra", "_file"), from_snapshot_id_exclusive=first)
    found = scan.to_arrow()
    assert found.column_names == ["id", "worth", "extra", "_file"]
    assert sorted(zip(found["id"].to_pylist(), found["extra"].to_pylist(), strict=True)) == [
        (4, None), (5, None), (6, None), (8, 1),
    ]  # fmt: skip
    assert scan.filter(EqualTo("kind", "b")).count() == 1
    assert len(list(scan.filter("kind = 'b'").plan_files())) == 1
    assert scan.count() == 4
    assert table.incremental_append_scan(limit=3).to_arrow().num_rows == 3
    assert scan.select("id").to_arrow().column_names == ["id"]
    assert scan.from_snapshot_id_inclusive(first).to_snapshot_id_inclusive(first).count() == 0
    tasks = pickle.loads(pickle.dumps([task for group in scan.plan_tasks() for task in group]))
    assert sum(batch.num_rows for batch in read_tasks(tasks, scan.context)) == 4
    assert scan.plan_arrow().num_rows == 3


def test_a_table_without_a_snapshot_has_appended_nothing() -> None:
    table = new_table(catalog=memory_catalog())
    assert table.incremental_append_scan().to_arrow().num_rows == 0
    with pytest.raises(NoSuchSnapshot, match="no snapshot 5"):
        table.incremental_append_scan(from_snapshot_id_exclusive=5).to_arrow()

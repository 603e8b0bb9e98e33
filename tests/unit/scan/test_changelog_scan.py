"""Changelog scans: planning, reading, comparing rows, and refused arguments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from delete_files import commit, data_files, position_deletes
from icefield.catalog import Table
from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.metadata.updates.snapshots import RemoveSnapshots
from icefield.scan import temporary_batches
from icefield.scan.changes import reading
from icefield.transaction import Action, Changes
from tables import Listener, memory_catalog, new_table, rows

MERGE_ON_READ = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}


def changes(table: Table, *args: Any, **given: Any) -> list[tuple[str, int, Any]]:
    found = table.incremental_changelog_scan(*args, **given).to_arrow()
    names = [name for name in ("_change_type", "_change_ordinal", "id") if name in found.column_names]
    return sorted(tuple(row[name] for name in names) for row in found.to_pylist())  # type: ignore[misc]


def with_updates(**given: Any) -> Table:
    """Two appends, an update, a delete."""
    table = new_table(**given)
    table.append(rows(range(4)))
    table.append(rows(range(4, 8), "b"))
    table.update("id in (1, 5)", {"value": 9.0})
    table.delete("id = 2")
    return table


@pytest.mark.spec("SCAN-52", "RSV-08")
@pytest.mark.parametrize("properties", [{}, MERGE_ON_READ], ids=["copy-on-write", "merge-on-read"])
def test_changes_are_stated_by_type_ordinal_and_snapshot(properties: Any) -> None:
    table = with_updates(properties=properties)
    snapshots = [snapshot.snapshot_id for snapshot in table.snapshots()]
    found = table.incremental_changelog_scan(from_snapshot_id_exclusive=snapshots[1]).to_arrow()
    assert found.schema.names == ["id", "kind", "value", "_change_type", "_change_ordinal", "_commit_snapshot_id"]
    assert [str(field.type) for field in found.schema][3:] == ["string", "int32", "int64"]
    stated = sorted(tuple(row.values())[3:] + tuple(row.values())[:3] for row in found.to_pylist())
    assert stated == [
        ("DELETE", 0, snapshots[2], 1, "a", 1.0),
        ("DELETE", 0, snapshots[2], 5, "b", 1.0),
        ("DELETE", 1, snapshots[3], 2, "a", 1.0),
        ("INSERT", 0, snapshots[2], 1, "a", 9.0),
        ("INSERT", 0, snapshots[2], 5, "b", 9.0),
    ]
    assert found["_change_ordinal"].to_pylist() == [0, 0, 0, 0, 1]
    assert found["_change_type"].to_pylist()[:2] == ["DELETE", "DELETE"]


def test_columns_are_projected_and_rows_compared_by_all_of_them() -> None:
    table = with_updates()
    scan = table.incremental_changelog_scan("id < 3", ("id", "_change_type"))
    found = scan.to_arrow()
    assert found.column_names == ["id", "_change_type"]
    assert sorted(map(tuple, (row.values() for row in found.to_pylist()))) == [
        (0, "INSERT"), (1, "DELETE"), (1, "INSERT"), (1, "INSERT"), (2, "DELETE"), (2, "INSERT"),
    ]  # fmt: skip
    assert scan.count() == 6
    assert table.incremental_changelog_scan(limit=3).to_arrow().num_rows == 3
    named = table.incremental_changelog_scan(selected_fields=("_file", "kind", "_pos")).to_arrow()
    assert named.column_names[:3] == ["kind", "_file", "_pos"]
    assert None not in named["_file"].to_pylist() + named["_pos"].to_pylist()
    assert table.incremental_changelog_scan().to_arrow().num_columns == 6


def test_carried_over_rows_are_given_where_asked_for() -> None:
    table = with_updates()
    begin = table.snapshots()[2].snapshot_id
    given = changes(table, from_snapshot_id_exclusive=begin, remove_carryovers=False)
    kept = [(kind, 0, id_) for id_ in (0, 1, 3) for kind in ("DELETE", "INSERT")]
    assert given == sorted([*kept, ("DELETE", 0, 2)])
    with pytest.raises(InvalidArgument, match="leave remove_carryovers as it is"):
        table.incremental_changelog_scan(remove_carryovers=False, net_changes=True)


@pytest.mark.parametrize("version", ["2", "3"])
def test_updates_are_found_by_columns_identifier_fields_or_row_ids(version: str) -> None:
    table = with_updates(properties={"format-version": version})
    begin = table.snapshots()[1].snapshot_id
    updated = [
        ("DELETE", 1, 2),
        *(("UPDATE_AFTER", 0, id_) for id_ in (1, 5)),
        *(("UPDATE_BEFORE", 0, id_) for id_ in (1, 5)),
    ]
    assert changes(table, from_snapshot_id_exclusive=begin, identifier_columns=["id"]) == updated
    if version == "3":
        assert changes(table, from_snapshot_id_exclusive=begin, compute_updates=True) == updated
    else:
        with pytest.raises(InvalidArgument, match="nothing identifies the rows of the table"):
            changes(table, compute_updates=True)
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("id", required=True)
        update.set_identifier_fields("id")
    assert changes(table, from_snapshot_id_exclusive=begin, compute_updates=True) == updated


def test_columns_that_several_rows_share_identify_none() -> None:
    table = with_updates()
    table.overwrite(rows([2, 3], "a", 4.0), "id = 0")
    with pytest.raises(InvalidArgument, match=r"kind do not identify a row: 1 rows with \('a'\) were deleted and 2"):
        changes(table, identifier_columns="kind", from_snapshot_id_inclusive=table.snapshots()[-1].snapshot_id)
    with pytest.raises(InvalidArgument, match="nest"):
        changes(table, identifier_columns=["nest"])


def test_net_changes_are_those_that_are_left() -> None:
    table = with_updates()
    table.append(rows([2]))
    table.delete("id = 2")
    table.append(rows([2]))
    net = changes(table, net_changes=True)
    assert [id_ for _, _, id_ in net] == [0, 3, 4, 6, 7, 1, 5, 2]
    assert {kind for kind, _, _ in net} == {"INSERT"}
    assert [ordinal for _, ordinal, _ in net] == [0, 0, 1, 1, 1, 2, 2, 6]
    begin = table.snapshots()[1].snapshot_id
    assert changes(table, net_changes=True, identifier_columns=["id"], from_snapshot_id_exclusive=begin) == [
        *(("UPDATE_AFTER", 0, id_) for id_ in (1, 5)),
        *(("UPDATE_BEFORE", 0, id_) for id_ in (1, 5)),
    ]


def test_files_of_other_partitions_are_neither_planned_nor_compared() -> None:
    listener = Listener()
    table = new_table(["kind"], catalog=memory_catalog(listener))
    table.append(pa.concat_tables([rows(range(4)), rows(range(4, 8), "b"), rows([8], "c")]))
    begin = table.snapshots()[0].snapshot_id
    table.update("id in (1, 5)", {"value": 9.0})
    scan = table.incremental_changelog_scan(from_snapshot_id_exclusive=begin)
    tasks = [*scan.plan_files()]
    assert [(task.is_matched, len(task.files)) for task in tasks] == [(True, 2), (True, 2)]
    (filtered,) = scan.filter("kind = 'b'").plan_files()
    assert {changed.task.file.partition for changed in filtered.files} == {("b",)}
    (by_id,) = table.incremental_changelog_scan(from_snapshot_id_exclusive=begin, identifier_columns="id").plan_files()
    assert len(by_id.files) == 4
    events = listener.events
    assert [event.files_planned for event in events if type(event).__name__ == "ScanPlanned"][-1] == 4


@pytest.mark.slow
def test_rows_beyond_the_bound_of_memory_are_compared_in_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(temporary_batches, "TemporaryDirectory", folders := _Folders(tmp_path))
    table = new_table()
    table.append(rows(range(3000)))
    table.update("id in (1, 5)", {"value": 9.0})
    table.delete("id >= 2990")
    for given in ({}, {"identifier_columns": ["id"]}, {"net_changes": True}):
        scan = table.incremental_changelog_scan(**given)
        small = replace(scan.changelog_context, held_bytes=4000)
        found = pa.Table.from_batches(reading.read_changes(scan.plan_files(), small), schema=scan.to_arrow().schema)
        key = [("_change_ordinal", "ascending"), ("id", "ascending"), ("_change_type", "ascending")]
        assert found.sort_by(key) == scan.to_arrow().sort_by(key)
    assert folders.made >= 3
    assert not [*tmp_path.iterdir()]


class _Folders:
    def __init__(self, root: Path) -> None:
        self.root, self.made = root, 0

    def __call__(self, prefix: str) -> Any:
        self.made += 1
        return TemporaryDirectory(prefix=prefix, dir=self.root)


def test_deletes_that_apply_no_more_insert_rows_again() -> None:
    table = new_table()
    table.append(rows(range(5)))
    (file,) = data_files(table)
    commit(table, first := position_deletes(table, [(file.file_path, 1), (file.file_path, 3)]))
    second = position_deletes(table, [(file.file_path, 3), (file.file_path, 4)])
    with table.update_snapshot().row_delta() as delta:
        delta.add_deletes(second)
        delta.remove_deletes(first)
    begin = table.snapshots()[1].snapshot_id
    assert changes(table, from_snapshot_id_exclusive=begin) == [("DELETE", 0, 4), ("INSERT", 0, 1)]


def test_the_parent_must_be_kept_where_rows_were_deleted() -> None:
    table = with_updates()
    first, second, third, _ = (snapshot.snapshot_id for snapshot in table.snapshots())
    expire(table, first, second)
    with pytest.raises(NoSuchSnapshot, match=f"snapshot {second} .*on which {third} was built, has expired"):
        changes(table, from_snapshot_id_exclusive=second)
    assert changes(table, from_snapshot_id_exclusive=third) == [("DELETE", 0, 2)]


def expire(table: Table, *snapshot_ids: int) -> None:
    class Expire(Action):
        def apply(self, base: Any, context: Any) -> Changes:
            return Changes((RemoveSnapshots(tuple(snapshot_ids)),))

    Expire(table.stage).commit()


def test_a_column_named_as_one_of_a_change_is_refused() -> None:
    table = new_table(schema=pa.schema([("id", pa.int64()), ("_change_type", pa.string())]))
    with pytest.raises(InvalidArgument, match="has a column '_change_type'"):
        table.incremental_changelog_scan().to_arrow()


def test_a_table_without_a_snapshot_has_no_changes() -> None:
    found = new_table().incremental_changelog_scan(net_changes=True).to_arrow()
    assert found.num_rows == 0
    assert found.column_names[-1] == "_commit_snapshot_id"

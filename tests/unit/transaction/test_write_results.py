"""Writes return the snapshot that they made, and the numbers of rows and files that they changed."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield import Table
from icefield.puffin import writer_name
from icefield.transaction import WriteResult
from icefield.transaction.change_stream.change_writer import ChangeWriter
from icefield.transaction.snapshots.write_result import authorship
from tables import memory_catalog

MODES = [(1, "copy-on-write"), (2, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write"), (3, "merge-on-read")]
NOTHING = WriteResult()


def new_table(version: int = 2, mode: str = "copy-on-write", **properties: str) -> Table:
    modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    schema = pa.schema([("id", pa.int64()), ("kind", pa.string())])
    return memory_catalog(**properties).create_table(
        "db.t", schema, properties={"format-version": version, "write.upsert.enabled": "true", **modes}
    )


def rows(*ids: int, kind: str = "a") -> dict[str, list[Any]]:
    return {"id": list(ids), "kind": [kind] * len(ids)}


def counted(result: WriteResult) -> tuple[int, int, int | None]:
    return result.rows_inserted, result.rows_updated, result.rows_deleted


def check(table: Table, result: WriteResult) -> None:
    """The result names the head, and its files are those of the summary."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    number = {name: int(text) for name, text in snapshot.summary.items() if text.isdigit()}
    assert result.snapshot_id == snapshot.snapshot_id
    assert result.files_added == number.get("added-data-files", 0) + number.get("added-delete-files", 0)
    assert result.files_removed == number.get("deleted-data-files", 0) + number.get("removed-delete-files", 0)


@pytest.mark.parametrize(("format_version", "mode"), MODES)
def test_each_change_of_rows_counts_the_rows_that_it_changed(format_version: int, mode: str) -> None:
    table = new_table(format_version, mode)
    first = table.append(rows(*range(10)))
    check(table, first)
    assert (counted(first), first.files_added, first.files_removed) == ((10, 0, 0), 1, 0)
    changes: list[tuple[Any, tuple[int, int, int]]] = [
        (lambda: table.delete("id < 3"), (0, 0, 3)),
        (lambda: table.update("id >= 8", {"kind": "b"}), (0, 2, 0)),
        (lambda: table.upsert([*rows_of(9, "c"), *rows_of(20, "d"), *rows_of(7, "a")], "id"), (1, 1, 0)),
        (lambda: table.overwrite(rows(5, 6), "id = 5"), (2, 0, 1)),
        (lambda: merged(table), (1, 1, 1)),
    ]
    for change, expected in changes:
        result = change()
        check(table, result)
        assert counted(result) == expected
    left = table.scan().count()
    cleared = table.delete()
    check(table, cleared)
    assert counted(cleared) == (0, 0, left)


def rows_of(number: int, kind: str) -> list[dict[str, Any]]:
    return [{"id": number, "kind": kind}]


def merged(table: Table) -> WriteResult:
    merge = table.merge(rows(3, 4, 30, kind="m"), "id")
    return merge.when_matched_delete("id = 3").when_matched_update_all().when_not_matched_insert_all().commit()


def test_a_change_of_nothing_has_no_snapshot() -> None:
    table = new_table()
    assert table.delete("id = 1") == table.append([]) == table.update("id = 1", {"kind": "x"}) == NOTHING


def test_replaced_partitions_count_the_rows_that_went() -> None:
    table = new_table()
    table.append(rows(1, 2))
    result = table.dynamic_partition_overwrite(rows(3))
    check(table, result)
    assert (counted(result), result.files_added, result.files_removed) == ((1, 0, 2), 1, 1)


def test_rows_deleted_by_equality_are_not_known() -> None:
    table = new_table()
    table.append(rows(1, 2))
    result = table.delete_by_equality({"id": [1]}, ["id"])
    check(table, result)
    assert counted(result) == (0, 0, None)


def test_a_stream_of_changes_counts_all_its_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChangeWriter, "is_full", True)
    table = new_table()
    table.append(rows(1, 2))
    several = [("INSERT", pa.table(rows(*range(n, n + 200_000)))) for n in (0, 200_000)]
    result = table.apply_changes(several, ["id"])
    assert len(table.snapshots()) > 2
    assert (counted(result), result.snapshot_id) == ((400_000, 0, None), table.metadata.current_snapshot_id)


def test_a_transaction_completes_its_results_when_it_commits() -> None:
    table = new_table()
    with table.transaction() as transaction:
        appended, deleted = transaction.append(rows(1, 2, 3)), transaction.delete("id = 2")
        assert appended == deleted == NOTHING
    assert (counted(appended), counted(deleted)) == ((3, 0, 0), (0, 0, 1))
    assert [appended.snapshot_id, deleted.snapshot_id] == [each.snapshot_id for each in table.snapshots()]


def test_a_repeated_attempt_counts_once() -> None:
    table = new_table()
    table.append(rows(1, 2))
    transaction = table.transaction()
    result = transaction.delete("id <= 2")
    transaction.preview()
    table.append(rows(0))
    transaction.commit_transaction()
    assert counted(result) == (0, 0, 3)


# -- authorship


def summary(table: Table) -> dict[str, str]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return dict(snapshot.summary)


def test_the_engine_is_stated_where_icefield_is_shipped_without_its_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    assert authorship({}, {})["engine-version"] == icefield.__version__
    assert writer_name() == f"Icefield {icefield.__version__}"


def test_a_snapshot_states_its_engine() -> None:
    table, number = new_table(), icefield.__version__
    table.append(rows(1))
    stated = {name: summary(table)[name] for name in ("engine-name", "engine-version", "iceberg-version")}
    assert stated == {"engine-name": "icefield", "engine-version": number, "iceberg-version": f"Icefield {number}"}


def test_another_engine_keeps_its_own_name_and_version() -> None:
    table = new_table()
    table.append(rows(1), {"engine-name": "other"})
    assert (summary(table)["engine-name"], "engine-version" in summary(table)) == ("other", False)


def test_a_snapshot_states_the_configured_user_and_note() -> None:
    table = new_table(**{"snapshot-property.user": "anna", "snapshot-property.note": "nightly"})
    table.append(rows(1))
    assert (summary(table)["user"], summary(table)["note"]) == ("anna", "nightly")
    table.append(rows(2), {"note": "by hand"})
    assert (summary(table)["user"], summary(table)["note"]) == ("anna", "by hand")

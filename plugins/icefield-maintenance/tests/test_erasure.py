"""Rows are erased from every version and file: no byte of the table's folder holds their values any more."""

from __future__ import annotations

import datetime as dt
import os
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidArgument, ValidationFailed
from icefield_maintenance import MaintenanceTable

SECRET = "bob@secret.example"
PEOPLE = ["ann@a.example", SECRET, "cid@c.example", "dora@d.example"]


def rows(*people: str) -> pa.Table:
    return pa.table({"email": pa.array(people, pa.string()), "n": pa.array(range(len(people)), pa.int64())})


@pytest.fixture
def catalog(tmp_path: Path) -> icefield.Catalog:
    made = icefield.load_catalog("c", type="directory", warehouse=tmp_path.as_uri(), **{"file.sync": "false"})
    made.create_namespace("db")
    return made


def made_table(catalog: icefield.Catalog, **properties: str) -> icefield.Table:
    given = {"write.parquet.compression-codec": "uncompressed", "write.avro.compression-codec": "uncompressed"}
    table = catalog.create_table("db.t", rows(), properties={**given, **properties})
    table.append(rows(*PEOPLE))
    table.append(rows("eve@e.example", SECRET))
    return table


def files_with_secret(tmp_path: Path) -> list[str]:
    """The files below the table's folder that hold the value; the codecs of data and metadata are "uncompressed"."""
    return [
        str(path.relative_to(tmp_path))
        for path in tmp_path.rglob("*")
        if path.is_file() and SECRET.encode()[:12] in path.read_bytes()
    ]


@pytest.mark.parametrize("version", ["1", "2", "3"])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_no_file_holds_an_erased_value(catalog: icefield.Catalog, tmp_path: Path, version: str, mode: str) -> None:
    table = made_table(catalog, **{"format-version": version, "write.delete.mode": mode})
    table.update("n = 0", {"n": 10})
    assert files_with_secret(tmp_path)
    result = table.maintenance.erase(f"email = '{SECRET}'")
    assert result.rows_deleted == 2
    assert files_with_secret(tmp_path) == []
    assert sorted(table.scan().to_arrow()["email"].to_pylist()) == sorted({*PEOPLE, "eve@e.example"} - {SECRET})
    assert len(table.snapshots()) == 1
    assert table.properties["write.delete.mode"] == mode
    again = table.maintenance.erase(f"email = '{SECRET}'")
    assert (again.rows_deleted, again.files_deleted) == (0, 0)


def test_rows_that_were_deleted_earlier_leave_the_files_too(catalog: icefield.Catalog, tmp_path: Path) -> None:
    table = made_table(catalog, **{"write.delete.mode": "merge-on-read"})
    table.delete(f"email = '{SECRET}'")
    assert table.maintenance.erase(f"email = '{SECRET}'").rows_deleted == 0
    assert files_with_secret(tmp_path) == []


def test_values_in_equality_deletes_are_erased(catalog: icefield.Catalog, tmp_path: Path) -> None:
    table = made_table(catalog)
    table.delete_by_equality(pa.table({"email": [SECRET]}), ["email"])
    table.maintenance.erase(f"email = '{SECRET}'")
    assert files_with_secret(tmp_path) == []
    assert table.scan().count() == 4


def test_every_branch_loses_the_rows(catalog: icefield.Catalog, tmp_path: Path) -> None:
    table = made_table(catalog)
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "other").commit()
    table.append(rows(SECRET), branch="other")
    assert table.maintenance.erase(f"email = '{SECRET}'").rows_deleted == 5
    assert files_with_secret(tmp_path) == []
    assert table.scan(ref="other").count() == table.scan().count() == 4


def test_a_tag_that_keeps_rows_is_refused_or_removed(catalog: icefield.Catalog, tmp_path: Path) -> None:
    table = made_table(catalog)
    table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "first").commit()
    with pytest.raises(InvalidArgument, match="tag 'first' keeps a version with rows to erase"):
        table.maintenance.erase(f"email = '{SECRET}'")
    assert table.scan().count() == 6
    assert table.maintenance.erase(f"email = '{SECRET}'", remove_tags=True).tags_removed == ("first",)
    assert files_with_secret(tmp_path) == []


def test_a_tag_without_such_rows_stays_whatever_its_columns_were_called(catalog: icefield.Catalog) -> None:
    table = catalog.create_table_as("db.t", rows("ann@a.example"))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "kept").commit()
    table.append(rows(SECRET))
    table.update_schema().rename_column("email", "mail").commit()
    table.maintenance.erase(f"mail = '{SECRET}'")
    assert table.scan(ref="kept").count() == 1
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "late").commit()
    table.update_schema().rename_column("mail", "address").commit()
    with pytest.raises(InvalidArgument, match=r"tag 'kept' .* removes kept, late"):
        table.maintenance.erase("address = 'ann@a.example'")


def test_a_file_of_another_folder_stays_and_the_error_says_so(catalog: icefield.Catalog, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    table = made_table(catalog)
    elsewhere = tmp_path / "elsewhere.parquet"
    pq.write_table(rows(SECRET), elsewhere)
    table.add_files([elsewhere.as_uri()])
    with pytest.raises(ValidationFailed, match="outside of its folders"):
        table.maintenance.erase(f"email = '{SECRET}'")
    assert elsewhere.exists()
    assert table.scan(f"email = '{SECRET}'").count() == 0


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.lists(st.sampled_from(PEOPLE), max_size=3)),
            st.tuples(st.just("delete"), st.sampled_from(PEOPLE)),
            st.tuples(st.just("equality"), st.sampled_from(PEOPLE)),
            st.tuples(st.just("compact"), st.none()),
            st.tuples(st.just("upsert"), st.sampled_from(PEOPLE)),
        ),
        max_size=5,
    ),
    st.sampled_from(["2", "3"]),
    st.sampled_from(["copy-on-write", "merge-on-read"]),
)
def test_any_history_is_erased(tmp_path_factory: pytest.TempPathFactory, steps, version: str, mode: str) -> None:
    tmp_path = tmp_path_factory.mktemp("erased")
    catalog = icefield.load_catalog("c", type="directory", warehouse=tmp_path.as_uri(), **{"file.sync": "false"})
    catalog.create_namespace("db")
    table = made_table(catalog, **{"format-version": version, "write.delete.mode": mode})
    for step, value in steps:
        match step:
            case "append":
                table.append(rows(*value))
            case "delete":
                table.delete(f"email = '{value}'")
            case "equality":
                table.delete_by_equality(pa.table({"email": [value]}), ["email"])
            case "compact":
                table.maintenance.rewrite_data_files(rewrite_all=True)
            case "upsert":
                if table.scan(f"email = '{value}'").count() < 2:
                    table.upsert(rows(value), ["email"])
    left = sorted(name for name in table.scan().to_arrow()["email"].to_pylist() if name != SECRET)
    table.maintenance.erase(f"email = '{SECRET}'", always=True)
    assert sorted(table.scan().to_arrow()["email"].to_pylist()) == left
    assert files_with_secret(tmp_path) == []


def test_an_erasure_that_could_not_delete_files_is_finished_by_the_next(
    catalog: icefield.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made_table(catalog)
    unlink = os.unlink

    def refuse(path: str, *args: object, **options: object) -> None:
        if str(path).endswith(".parquet"):
            raise PermissionError(13, "not allowed", path)
        unlink(path)

    with monkeypatch.context() as patching:
        patching.setattr(os, "unlink", refuse)
        with pytest.raises(ValidationFailed, match="erase again"):
            table.maintenance.erase(f"email = '{SECRET}'")
    assert files_with_secret(tmp_path)
    assert table.maintenance.erase(f"email = '{SECRET}'").files_deleted > 0
    assert files_with_secret(tmp_path) == []


@pytest.mark.parametrize("number", range(1, 25, 2))
def test_an_erasure_that_was_interrupted_is_finished_by_the_next(
    catalog: icefield.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    table = made_table(catalog)
    unlink, calls = os.unlink, count(1)

    def interrupt(path: str, *args: object, **options: object) -> None:
        if next(calls) == number:
            raise KeyboardInterrupt
        unlink(path)

    with monkeypatch.context() as patching, suppress(KeyboardInterrupt):
        patching.setattr(os, "unlink", interrupt)
        table.maintenance.erase(f"email = '{SECRET}'")
    table = catalog.load_table("db.t")
    table.maintenance.erase(f"email = '{SECRET}'", always=True)
    table.maintenance.remove_orphan_files(dry_run=False, older_than=dt.datetime.now(dt.UTC), allow_recent=True)
    assert files_with_secret(tmp_path) == []
    assert table.scan().count() == 4


def test_a_tag_over_removed_files_or_equality_deletes_is_refused_too(catalog: icefield.Catalog, tmp_path: Path) -> None:
    table = made_table(catalog)
    table.delete(f"email = '{SECRET}'")
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "after").commit()
    with pytest.raises(InvalidArgument, match="tag 'after' keeps a version"):
        table.maintenance.erase(f"email = '{SECRET}'")
    assert table.maintenance.erase(f"email = '{SECRET}'", remove_tags=True).tags_removed == ("after",)
    table.delete_by_equality(pa.table({"email": [SECRET]}), ["email"])
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "later").commit()
    with pytest.raises(InvalidArgument, match="tag 'later' keeps a version"):
        table.maintenance.erase(f"email = '{SECRET}'", always=True)
    table.maintenance.erase(f"email = '{SECRET}'", always=True, remove_tags=True)
    assert files_with_secret(tmp_path) == []


def test_rows_that_others_wrote_and_deleted_meanwhile_are_erased_too(
    catalog: icefield.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made_table(catalog)
    expire, met = MaintenanceTable.expire_snapshots, []

    def meanwhile(self: MaintenanceTable, **options: Any) -> Any:
        if not met:
            met.append(True)
            other = catalog.load_table("db.t")
            other.append(rows(SECRET))
            other.delete(f"email = '{SECRET}'")
        return expire(self, **options)

    monkeypatch.setattr(MaintenanceTable, "expire_snapshots", meanwhile)
    table.maintenance.erase(f"email = '{SECRET}'")
    assert files_with_secret(tmp_path) == []
    assert len(table.snapshots()) == 1


def test_nothing_is_changed_where_no_file_holds_such_a_row(catalog: icefield.Catalog) -> None:
    table = made_table(catalog)
    table.delete("n = 0")
    before = table.metadata
    result = table.maintenance.erase("email = 'nobody'")
    assert result.files_examined > 0
    assert (result.rows_deleted, result.snapshots_expired) == (0, 0)
    assert catalog.load_table("db.t").metadata == before


def test_a_staged_write_is_not_lost(catalog: icefield.Catalog) -> None:
    table = made_table(catalog, **{"write.wap.enabled": "true"})
    table.append(rows("fay@f.example"), snapshot_properties={"wap.id": "w1"}, branch=None)
    with pytest.raises(InvalidArgument, match=r"staged write \(wap.id=w1\) and would be lost"):
        table.maintenance.erase(f"email = '{SECRET}'")
    table.manage_snapshots().publish_changes("w1").commit()
    table.maintenance.erase(f"email = '{SECRET}'")
    assert table.scan().count() == 5

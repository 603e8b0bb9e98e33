"""Rows are erased from every version and file: no byte of the table's folder holds their values any more."""

from __future__ import annotations

from pathlib import Path

import icefield
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidArgument, ValidationFailed

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


@pytest.mark.parametrize(
    ("version", "mode"),
    [("1", "copy-on-write"), *[(version, mode) for version in "23" for mode in ("copy-on-write", "merge-on-read")]],
)
def test_no_file_holds_an_erased_value(catalog: icefield.Catalog, tmp_path: Path, version: str, mode: str) -> None:
    table = made_table(catalog, **{"format-version": version, "write.delete.mode": mode})
    table.update("n = 0", {"n": 10})
    assert files_with_secret(tmp_path)
    result = table.maintenance.erase(f"email = '{SECRET}'")
    assert result.rows_deleted == 2
    assert files_with_secret(tmp_path) == []
    assert sorted(table.scan().to_arrow()["email"].to_pylist()) == sorted({*PEOPLE, "eve@e.example"} - {SECRET})
    assert len(table.snapshots()) == 1
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
    table.maintenance.erase(f"email = '{SECRET}'")
    assert sorted(table.scan().to_arrow()["email"].to_pylist()) == left
    assert files_with_secret(tmp_path) == []

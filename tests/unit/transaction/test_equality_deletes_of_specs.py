"""Equality deletes reach rows whose files are of another partition spec than the table's present one."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from icefield import Table
from icefield.errors import InvalidArgument
from tables import memory_catalog, new_table

ROWS = pa.table({"id": pa.array(range(4), pa.int64()), "kind": ["a", "b", "a", "b"]})
GONE = pa.table({"id": pa.array([1], pa.int64()), "kind": ["b"]})


def delete(table: Table) -> None:
    table.delete_by_equality(GONE, ["id", "kind"])


def change(table: Table) -> None:
    table.apply_changes([("delete", GONE)], ["id", "kind"])


def ids(table: Table) -> list[int]:
    table.refresh()
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def evolve_to_id(table: Table) -> None:
    table.update_spec().remove_field("kind").add_field("id", "bucket[2]", "by_id").commit()


@pytest.mark.spec("SCAN-43")
@pytest.mark.parametrize("deleting", [delete, change])
@pytest.mark.parametrize("spec", [["kind"], []])
@pytest.mark.parametrize("version", [2, 3])
def test_rows_of_files_of_an_older_spec_are_deleted(
    deleting: Callable[[Table], None], spec: list[str], version: int
) -> None:
    table = new_table(spec, schema=ROWS.schema, properties={"format-version": str(version)})
    table.append(ROWS)
    if spec:
        evolve_to_id(table)
    else:
        table.update_spec().add_field("id", "bucket[2]", "by_id").commit()
    table.append(ROWS.slice(0, 1))
    deleting(table)
    assert ids(table) == [0, 0, 2, 3]
    table.append(GONE)
    assert ids(table) == [0, 0, 1, 2, 3]


@pytest.mark.parametrize("deleting", [delete, change])
def test_rows_of_files_that_moved_to_another_spec_meanwhile_are_deleted(deleting: Callable[[Table], None]) -> None:
    catalog = memory_catalog()
    table = new_table(["kind"], schema=ROWS.schema, properties={"format-version": "2"}, catalog=catalog)
    table.append(ROWS)
    before = catalog.load_table("db.t")
    evolve_to_id(table)
    table.maintenance.rewrite_data_files(rewrite_all=True)
    deleting(before)
    assert ids(table) == [0, 2, 3]


def test_a_column_that_an_older_spec_needs_must_be_among_those_deleted_by() -> None:
    table = new_table(["kind"], schema=ROWS.schema, properties={"format-version": "2"})
    table.append(ROWS)
    evolve_to_id(table)
    with pytest.raises(InvalidArgument, match=r"'kind'.*rewrite_data_files"):
        table.delete_by_equality(GONE.select(["id"]), ["id"])
    assert ids(table) == [0, 1, 2, 3]

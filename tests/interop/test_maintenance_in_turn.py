"""Maintenance by Icefield and by the procedures of Iceberg's Java runtime for Spark, in turns on one table.

After each operation Spark, DuckDB, PyIceberg and Icefield read the same rows; changes of rows go on in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from icefield.catalog import Table
from icefield.manifest import DataFileContent
from icefield_maintenance.doctor import Result, examine_table
from peers import duckdb_rows
from shared_with_spark import SCHEMA, Shared, arrow, delete_formats, fresh, properties_of
from tables import manifests

VERSIONS = pytest.mark.parametrize("version", [2, 3])
SEPARATE = {"commit.manifest-merge.enabled": "false"}


def begun(shared: Shared, version: int) -> Table:
    """A table of six commits, with a row of each deleted by position or vector, and some by value."""
    given = {
        **properties_of(version, "parquet", "merge-on-read"),
        **SEPARATE,
        "history.expire.min-snapshots-to-keep": "1",
    }
    table = shared.catalog.create_table("db.t", SCHEMA, partition_spec=["part"], properties=given)
    for start in range(0, 60, 10):
        append(shared, start)
    remove(shared, 0, 10, 20)
    remove(shared, 30, 40, 50)
    table.refresh().delete_by_equality(pa.table({"id": [3, 14, 25], "part": ["b", "a", "b"]}), ["id", "part"])
    for id_ in (3, 14, 25):
        del shared.rows[id_]
    table.delete_by_equality(pa.table({"id": [1], "part": ["gone"]}), ["id", "part"])
    return table


def append(shared: Shared, start: int, *, spark: bool = False) -> None:
    new = fresh(range(start, start + 10), float(start))
    if spark:
        listed = ", ".join(f"({id_}L, {part!r}, {value}D)" for id_, (part, value) in new.items())
        shared.sql(f"INSERT INTO {{t}} VALUES {listed}")
    else:
        shared.table.append(arrow(new))
    shared.rows |= new


def remove(shared: Shared, *ids: int, spark: bool = False) -> None:
    listed = f"id IN ({', '.join(map(str, ids))})"
    if spark:
        shared.sql(f"DELETE FROM {{t}} WHERE {listed}")
    else:
        shared.table.delete(listed)
    for id_ in ids:
        del shared.rows[id_]


def all_agree(shared: Shared, duck: Any) -> None:
    """Check that all four read the rows. PyIceberg refuses equality deletes, so it reads only when none is left."""
    shared.expect()
    table = shared.table
    assert sorted(duckdb_rows(duck, table)["id"].to_pylist()) == sorted(shared.rows)
    if DataFileContent.EQUALITY_DELETES not in table.inspect.delete_files()["content"].to_pylist():
        from pyiceberg.table import StaticTable

        read = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
        assert sorted(read["id"].to_pylist()) == sorted(shared.rows)


def is_sound(table: Table) -> None:
    """Check that the doctor finds no fault; findings that maintenance resolves are allowed."""
    found = [finding for group in examine_table(table, whole=True) for finding in group.findings]
    # Java keeps its own statistics of deletes, and names of expired metadata files.
    assert [each for each in found if each.result is Result.FAILED] == []


def soon() -> int:
    """A time after all changes so far, in ms."""
    return int(time.time() * 1000) + 1


@VERSIONS
@pytest.mark.spec("VER-13", "MAN-14")
def test_every_peer_reads_the_same_rows_after_each_operation_of_maintenance(
    shared: Shared, duck: Any, version: int
) -> None:
    pytest.importorskip("pyiceberg")
    begun(shared, version)
    all_agree(shared, duck)

    def maintenance(**given: Any) -> Callable[[str], Any]:
        return lambda name: getattr(shared.table.maintenance, name)(**given)

    def again() -> None:
        start = 10 * (1 + max(shared.rows) // 10)
        append(shared, start)
        remove(shared, start, start + 1)

    operations: list[tuple[str, Callable[[str], Any]]] = [
        ("compute_table_stats", maintenance()),
        ("compute_partition_stats", maintenance()),
        ("remove_dangling_deletes", maintenance()),
        ("rewrite_position_delete_files", maintenance(rewrite_all=True)),
        ("convert_equality_deletes", maintenance()),
        ("rewrite_manifests", maintenance()),
        ("rewrite_data_files", maintenance(delete_file_threshold=1)),
        ("rewrite_data_files", maintenance(strategy="sort", sort_order=["value desc", "id"], rewrite_all=True)),
        ("rewrite_data_files", maintenance(strategy="zorder", zorder_columns=["id", "value"], rewrite_all=True)),
        ("expire_snapshots", lambda _: shared.table.maintenance.expire_snapshots(older_than=soon(), retain_last=1)),
        (
            "remove_orphan_files",
            lambda _: shared.table.maintenance.remove_orphan_files(soon(), dry_run=False, allow_recent=True),
        ),
    ]
    for number, (name, operation) in enumerate(operations):
        if number > 6:
            again()
        before = shared.table.metadata_location
        operation(name)
        assert (shared.table.metadata_location != before) is (name != "remove_orphan_files"), name
        all_agree(shared, duck)
    is_sound(shared.table)


@VERSIONS
@pytest.mark.spec("VER-13", "MAN-14")
def test_icefield_and_spark_keep_one_table_in_turns(shared: Shared, duck: Any, version: int) -> None:
    """In each of two rounds, both rewrite data files, deletes and manifests, and expire snapshots of the other."""
    pytest.importorskip("pyiceberg")
    begun(shared, version)
    catalog = shared.name.split(".")[0]

    def call(procedure: str, more: str = "") -> list[dict[str, Any]]:
        return shared.spark.sql(f"CALL {catalog}.system.{procedure}(table => 'db.t'{more})")

    start = 60
    for turn in range(2):
        ours_first = turn % 2 == 0
        for by_spark in (not ours_first, ours_first):
            append(shared, start, spark=not by_spark)
            append(shared, start + 10, spark=by_spark)
            remove(shared, start + 3, start + 14, spark=not by_spark)
            remove(shared, start + 4, spark=by_spark)
            start += 20
            all_agree(shared, duck)
            if by_spark:
                more = ", options => map('min-input-files', '2', 'delete-file-threshold', '1')"
                assert call("rewrite_data_files", more)[0]["rewritten_data_files_count"] > 0
                all_agree(shared, duck)
                remove(shared, start - 5)
                call("rewrite_position_delete_files", ", options => map('rewrite-all', 'true')")
                all_agree(shared, duck)
                assert call("rewrite_manifests")[0]["rewritten_manifests_count"] > 0
                all_agree(shared, duck)
                gone = call("expire_snapshots", ", older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1")
                assert gone[0]["deleted_data_files_count"] > 0
                assert len(shared.table.snapshots()) == 1
            else:
                maintenance = shared.table.maintenance
                made = maintenance.rewrite_data_files(min_input_files=2, delete_file_threshold=1)
                assert made.rewritten_data_files > 0
                all_agree(shared, duck)
                remove(shared, start - 5, spark=True)
                shared.table.maintenance.rewrite_position_delete_files(rewrite_all=True)
                all_agree(shared, duck)
                assert shared.table.maintenance.rewrite_manifests().rewritten_manifests > 0
                all_agree(shared, duck)
                expired = shared.table.maintenance.expire_snapshots(older_than=soon(), retain_last=1)
                assert expired.data_files > 0
                assert len(shared.table.snapshots()) == 1
            all_agree(shared, duck)
            is_sound(shared.table)
    shared.table.maintenance.remove_dangling_deletes()
    shared.table.maintenance.convert_equality_deletes()
    all_agree(shared, duck)
    assert "equality" not in {kind for kind, _ in delete_formats(shared.table)}
    assert manifests(shared.table)

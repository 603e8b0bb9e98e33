"""Changes between snapshots, according to Icefield and to ``create_changelog_view`` of Iceberg's Java runtime."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from icefield.catalog import Table
from servers.spark_runtime import SparkError
from shared_with_spark import SCHEMA, Shared, arrow, fresh, properties_of, source

COLUMNS = ("id", "part", "value", "_change_type", "_change_ordinal", "_commit_snapshot_id")


def lived(shared: Shared, version: int, mode: str) -> Table:
    """A table with changes of each kind by both, a compaction among them."""
    table = shared.catalog.create_table("db.t", SCHEMA, properties=properties_of(version, "parquet", mode))
    table.append(arrow(fresh(range(20), 0.5)))
    table.update("id in (1, 2)", {"value": 7.0})
    table.delete("id in (3, 4)")
    shared.sql("UPDATE {t} SET part = 'c' WHERE id IN (5, 2)")
    table.refresh().maintenance.rewrite_data_files(rewrite_all=True)
    shared.sql(
        f"MERGE INTO {{t}} t USING {source({6: ('b', 8.0), 7: ('x', 8.5), 100: ('c', 9.0)})} s ON t.id = s.id "
        "WHEN MATCHED AND s.part = 'x' THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    shared.sql("INSERT INTO {t} VALUES (3L, 'b', 0.5D)")
    table.refresh().overwrite(arrow({8: ("b", 1.0)}), "id = 8")
    return table.refresh()


def said_by_spark(shared: Shared, begin: int, end: int, more: str = "") -> list[tuple[Any, ...]]:
    catalog = shared.name.split(".")[0]
    shared.spark.sql(
        f"CALL {catalog}.system.create_changelog_view(table => 'db.t', changelog_view => 'changed', "
        f"options => map('start-snapshot-id', '{begin}', 'end-snapshot-id', '{end}'){more})"
    )
    try:
        rows = shared.spark.sql(f"SELECT {', '.join(COLUMNS)} FROM changed")
    finally:  # a temporary view would be listed by SHOW VIEWS of other tests in this session
        shared.spark.sql("DROP VIEW changed")
    return sorted((tuple(row[name] for name in COLUMNS) for row in rows), key=repr)


def said_here(table: Table, begin: int, end: int, **given: Any) -> list[tuple[Any, ...]]:
    scan = table.incremental_changelog_scan(
        from_snapshot_id_exclusive=begin, to_snapshot_id_inclusive=end, selected_fields=COLUMNS, **given
    )
    return sorted((tuple(row.values()) for row in scan.to_arrow().to_pylist()), key=repr)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("SCAN-52")
def test_spark_says_the_same_of_changes_that_rewrote_files(shared: Shared, version: int) -> None:
    table = lived(shared, version, "copy-on-write")
    numbers = [snapshot.snapshot_id for snapshot in table.snapshots()]
    ranges = [(numbers[0], numbers[-1]), (numbers[1], numbers[4]), *pairwise(numbers)]
    for begin, end in ranges:
        assert said_here(table, begin, end) == said_by_spark(shared, begin, end), "carry-over removed"
    for begin, end in ranges[:2]:
        assert said_here(table, begin, end, identifier_columns=["id"]) == said_by_spark(
            shared, begin, end, ", identifier_columns => array('id')"
        ), "update images"
    whole = ranges[0]
    net = said_here(table, *whole, net_changes=True)
    assert [row[:4] for row in net] == [row[:4] for row in said_by_spark(shared, *whole, ", net_changes => true")]
    kinds = {row[3] for row in said_here(table, *whole, identifier_columns=["id"])}
    assert kinds == {"INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER"}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("SCAN-52")
def test_marked_deletes_are_changes_here_as_rewritten_files_are_there(shared: Shared, version: int) -> None:
    """Spark's view reads no delete files, so Spark's table has the same changes as rewritten files."""
    table = lived(shared, version, "merge-on-read")
    numbers = [snapshot.snapshot_id for snapshot in table.snapshots()]
    with pytest.raises(SparkError, match="Delete files are currently not supported in changelog scans"):
        said_by_spark(shared, numbers[0], numbers[-1])
    ours = said_here(table, numbers[0], numbers[-1], identifier_columns=["id"])
    shared.catalog.drop_table("db.t")
    rewritten = lived(shared, version, "copy-on-write")
    theirs = [snapshot.snapshot_id for snapshot in rewritten.snapshots()]
    said = said_by_spark(shared, theirs[0], theirs[-1], ", identifier_columns => array('id')")
    assert [row[:5] for row in ours] == [row[:5] for row in said]

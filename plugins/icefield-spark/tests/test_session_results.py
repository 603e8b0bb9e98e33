"""Writes of a session return their snapshot, and the rows and files that changed, as the kernel's tables do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import icefield
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from icefield import Table
from icefield.transaction import WriteResult
from pyspark.sql import functions as f

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int32()), ("name", pa.string())])
COLUMNS = "id long, part int, name string"
MODES = [(1, "copy-on-write"), (2, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write"), (3, "merge-on-read")]

Row = tuple[int, int, str]
Counts = tuple[int, int, int | None]


def new_table(catalog: icefield.Catalog, name: str, version: int, mode: str) -> Table:
    """Ids 0 to 19, five in each partition. Delete files are of one data file, so that rows count once."""
    modes = {f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")}
    properties = {"format-version": str(version), "write.delete.granularity": "file", **modes}
    table = catalog.create_table(name, SCHEMA, partition_spec=["part"], properties=properties)
    table.append(arrow(*((n, n // 5, f"n{n}") for n in range(20))))
    return table


def arrow(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def names(table: Table) -> dict[int, str]:
    return {row["id"]: row["name"] for row in table.scan().to_arrow().to_pylist()}


def files(table: Table) -> set[tuple[str, int | None]]:
    """The files of a table, data and deletes; one Puffin file may hold several deletion vectors."""
    found = table.inspect.files().select(["file_path", "content_offset"]).to_pylist()
    return {(row["file_path"], row["content_offset"]) for row in found}


def counted(result: WriteResult) -> Counts:
    return result.rows_inserted, result.rows_updated, result.rows_deleted


def difference(before: dict[int, str], after: dict[int, str]) -> Counts:
    changed = sum(before[each] != after[each] for each in before.keys() & after.keys())
    return len(after.keys() - before.keys()), changed, len(before.keys() - after.keys())


def changes(ice: Any, table: Table) -> list[tuple[Callable[[], Any], Callable[[], WriteResult]]]:
    """Changes of ``db.spark`` by the session, and the same changes by the kernel's table."""
    name = "db.spark"

    def frame(*rows: Row) -> Any:
        return ice.spark.createDataFrame(list(rows), COLUMNS)

    def both(rows: list[Row], by_session: str, by_table: str, *more: Any) -> Any:
        return (
            lambda: getattr(ice, by_session)(frame(*rows), name, *more),
            lambda: getattr(table, by_table)(arrow(*rows), *more),
        )

    source = [(0, 0, "drop"), (3, 0, "m"), (80, 0, "i"), (81, 0, "no")]
    return [
        both([(n, 4, f"n{n}") for n in range(20, 25)], "append", "append"),
        both([], "append", "append"),
        both([(30, 1, "whole file")], "overwrite", "overwrite", "part = 1"),
        both([(40, 2, "n40"), (41, 3, "n41")], "overwrite", "overwrite", "id >= 12"),
        both([(50, 2, "n50"), (51, 9, "n51")], "overwrite_partitions", "dynamic_partition_overwrite"),
        (lambda: ice.delete(name, "id in (1, 50)"), lambda: table.delete("id in (1, 50)")),
        (
            lambda: ice.delete(name, f.expr("length(name) = 3 OR pmod(id, 4) = 2")),
            lambda: table.delete("id in (2, 41, 51)"),
        ),
        (lambda: ice.delete(name, "id = 999"), lambda: table.delete("id = 999")),
        (lambda: ice.update(name, {"name": "'u'"}, "id >= 3"), lambda: table.update("id >= 3", {"name": "u"})),
        both([(3, 0, "up"), (60, 0, "new")], "upsert", "upsert", ["id"]),
        (
            lambda: (
                ice.merge(frame(*source), name, ["id"])
                .when_matched_delete("source.name = 'drop'")
                .when_matched_update_all()
                .when_not_matched_insert_all("source.name <> 'no'")
                .when_not_matched_by_source_update({"name": "'kept'"}, "id = 4")
                .when_not_matched_by_source_delete()
                .commit()
            ),
            lambda: (
                table.merge(arrow(*source), ["id"])
                .when_matched_delete("id = 0")
                .when_matched_update_all()
                .when_not_matched_insert_all(pc.field("source", "name") != "no")
                .when_not_matched_by_source_update({"name": "kept"}, "id = 4")
                .when_not_matched_by_source_delete()
                .commit()
            ),
        ),
        both([(90, 0, "n90")], "overwrite", "overwrite", "id >= 4"),
        both([(91, 0, "n91")], "overwrite", "overwrite"),
        (lambda: ice.delete(name, f.col("id") > 0), lambda: table.delete()),
    ]


@pytest.mark.parametrize(("version", "mode"), MODES)
def test_each_write_counts_the_rows_and_files_that_it_changed(
    ice: Any, catalog: icefield.Catalog, version: int, mode: str
) -> None:
    mine = new_table(catalog, "db.spark", version, mode)
    other = new_table(catalog, "db.kernel", version, mode)
    found: list[Counts] = []
    for by_session, by_table in changes(ice, other):
        head, rows, held = mine.current_snapshot(), names(mine), files(mine)
        result, expected = by_session(), by_table()
        mine.refresh()
        assert counted(result) == counted(expected) == difference(rows, names(mine))
        assert names(mine) == names(other)
        assert result.files_added == len(files(mine) - held)
        assert result.files_removed == len(held - files(mine))
        snapshot = mine.current_snapshot()
        assert snapshot is not None
        assert result.snapshot_id == (None if snapshot == head else snapshot.snapshot_id)
        found.append(counted(result))
    nothing = (0, 0, 0)
    overwrites = [(1, 0, 5), (2, 0, 14), (2, 0, 3)]
    changed = [(0, 0, 2), (0, 0, 3), nothing, (0, 2, 0), (1, 1, 0), (1, 2, 2)]
    assert found == [(5, 0, 0), nothing, *overwrites, *changed, (1, 0, 2), (1, 0, 2), (0, 0, 1)]


def test_rows_that_are_written_with_the_same_values_count_as_updated(ice: Any, catalog: icefield.Catalog) -> None:
    new_table(catalog, "db.spark", 2, "copy-on-write")
    frame = ice.spark.createDataFrame([(1, 0, "n1"), (2, 0, "other"), (70, 0, "new")], COLUMNS)
    assert counted(ice.upsert(frame, "db.spark", ["id"])) == (1, 2, 0)
    assert counted(ice.update("db.spark", {"part": "part"}, "id < 4")) == (0, 4, 0)


def test_a_staged_write_names_its_snapshot(ice: Any, catalog: icefield.Catalog) -> None:
    table = new_table(catalog, "db.spark", 2, "copy-on-write")
    frame = ice.spark.createDataFrame([(100, 1, "staged")], COLUMNS)
    writes: list[tuple[Callable[[], WriteResult], Counts]] = [
        (lambda: ice.append(frame, "db.spark", branch=None), (1, 0, 0)),
        (lambda: ice.overwrite(frame, "db.spark", "id > 16", branch=None), (1, 0, 3)),
    ]
    for write, counts in writes:
        result = write()
        staged = table.refresh().snapshots()[-1]
        assert (result.snapshot_id, counted(result)) == (staged.snapshot_id, counts)
        assert table.metadata.current_snapshot_id != staged.snapshot_id

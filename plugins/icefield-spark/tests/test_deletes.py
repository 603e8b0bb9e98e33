"""Tables with row-level deletes of other engines, read on executors."""

from __future__ import annotations

import pickle
from typing import Any

import icefield
import pyarrow as pa
import pytest
from delete_files import commit, data_files, deletion_vectors, equality_deletes, position_deletes
from icefield_spark.chunks import ChunkContext, plan_chunks, read_chunk
from icefield_spark.types import to_spark_schema

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def table_with_deletes(catalog: icefield.Catalog, version: int) -> icefield.Table:
    """Ids 0 to 19 in two files, of which 1, 3, 12, 13 and 17 are deleted."""
    table = catalog.create_table("db.deleted", SCHEMA, properties={"format-version": str(version)})
    for start in (0, 10):
        table.append(pa.table({"id": range(start, start + 10), "name": [f"n{n}" for n in range(10)]}, SCHEMA))
    first, second = data_files(table)
    if version == 3:
        commit(table, *deletion_vectors(table, {first: [1], second: [2, 3]}))
    else:
        pairs = sorted([(first.file_path, 1), (second.file_path, 2), (second.file_path, 3)])
        commit(table, position_deletes(table, pairs))
    commit(table, equality_deletes(table, ["id"], [{"id": 3}, {"id": 17}]))
    return table


LEFT = [0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 16, 18, 19]


@pytest.mark.parametrize("version", [2, 3])
def test_chunks_are_read_without_deleted_rows(catalog: icefield.Catalog, version: int) -> None:
    scan = table_with_deletes(catalog, version).scan()
    context = pickle.loads(pickle.dumps(ChunkContext.of(scan, to_spark_schema(scan.projection))))
    batches = [batch for chunk in plan_chunks(scan) for batch in read_chunk(chunk, context)]
    assert pa.Table.from_batches(batches)["id"].to_pylist() == LEFT
    assert context.scan.scan_id is not None
    assert ChunkContext.of(scan, to_spark_schema(scan.projection)).scan.scan_id != context.scan.scan_id


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
def test_the_session_and_the_data_source_apply_deletes(
    catalog: icefield.Catalog, spark: Any, ice: Any, options: dict[str, str], version: int
) -> None:
    table_with_deletes(catalog, version)
    source = spark.read.format("icefield").options(**options).load("db.deleted")
    for frame in (ice.table("db.deleted"), source):
        assert sorted(row["id"] for row in frame.collect()) == LEFT
        assert sorted(row["name"] for row in frame.where("id < 5").select("name").collect()) == ["n0", "n2", "n4"]
        assert frame.count() == len(LEFT)


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
def test_rows_that_were_marked_here_are_read_nowhere(
    catalog: icefield.Catalog, spark: Any, ice: Any, options: dict[str, str], version: int
) -> None:
    modes = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}
    table = catalog.create_table("db.marked", SCHEMA, properties={"format-version": str(version), **modes})
    for start in (0, 10):
        table.append(pa.table({"id": range(start, start + 10), "name": [f"n{n}" for n in range(10)]}, SCHEMA))
    table.delete("id in (1, 12, 13)")
    table.update("id = 4", {"name": "updated"})
    table.merge(
        pa.table({"id": [5, 20], "name": ["merged", "new"]}, SCHEMA), "id"
    ).when_matched_update_all().when_not_matched_insert_all().commit()
    assert int(table.current_snapshot().summary["total-position-deletes"]) == 5
    wanted = sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())
    assert len(wanted) == 18
    source = spark.read.format("icefield").options(**options).load("db.marked")
    for frame in (ice.table("db.marked"), source):
        assert sorted(tuple(row) for row in frame.collect()) == wanted

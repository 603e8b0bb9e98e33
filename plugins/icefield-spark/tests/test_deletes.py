"""Tables with row-level deletes of other engines, read on executors."""

from __future__ import annotations

import pickle
from typing import Any

import icefield
import pyarrow as pa
import pytest
from delete_files import commit, data_files, deletion_vectors, equality_deletes, position_deletes
from icefield_spark.chunks import ChunkContext, plan_chunks
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
    batches = [batch for chunk in plan_chunks(scan) for batch in context.read(chunk)]
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


def table_of_all_kinds(catalog: icefield.Catalog) -> tuple[icefield.Table, dict[int, str]]:
    """Two files of each format with deletes of each kind, columns that have evolved since, and the rows left."""
    columns = pa.schema([("id", pa.int64()), ("key", pa.int32()), ("old", pa.string()), ("name", pa.string())])
    properties = {
        "format-version": "2",
        "write.parquet.row-group-size-bytes": "200",
        "read.split.target-size": "1",
        "read.split.open-file-cost": "1",
    }
    table = catalog.create_table("db.kinds", columns, properties=properties)
    for at, file_format in enumerate(["parquet", "orc", "avro"] * 2):
        table.set_properties({"write.format.default": file_format})
        ids = range(at * 20, at * 20 + 20)
        table.append(pa.table([ids, ids, [f"o{id_}" for id_ in ids], [f"n{id_}" for id_ in ids]], schema=columns))
    files = {file.file_path: file for file in data_files(table)}
    paths = list(files)
    gone = set()
    for at, file_format in enumerate(("parquet", "orc", "avro")):
        pairs = sorted([(path, position) for path in paths[at::3] for position in (1, 7)])
        commit(table, position_deletes(table, pairs, file_format))
        keys = [{"key": at * 20 + 2}, {"key": 60 + at * 20 + 3}]
        commit(table, equality_deletes(table, ["key"], keys, file_format))
        commit(table, equality_deletes(table, ["old"], [{"old": f"o{at * 20 + 4}"}], file_format))
        gone |= {place * 20 + position for place in range(at, 6, 3) for position in (1, 7)}
        gone |= {at * 20 + 2, 60 + at * 20 + 3, at * 20 + 4}
    with table.update_schema() as update:
        update.update_column("key", pa.int64()).rename_column("key", "number").delete_column("old")
    table.transaction().upgrade_table_version(3).commit_transaction()
    # A vector holds what the position deletes of its file hold.
    vectors = deletion_vectors(table, {files[path]: [1, 7, 15] for path in paths[:4]})
    commit(table, *vectors)
    commit(table, equality_deletes(table, ["number"], [{"number": 5}, {"number": 100}, {"number": 1 << 40}]))
    gone |= {at * 20 + 15 for at in range(4)} | {5, 100}
    return table, {id_: f"n{id_}" for id_ in range(120) if id_ not in gone}


@pytest.mark.spark
@pytest.mark.slow
def test_deletes_of_all_kinds_apply_to_files_of_all_formats_read_in_pieces(
    catalog: icefield.Catalog, spark: Any, ice: Any, options: dict[str, str]
) -> None:
    """The columns by which rows are deleted were renamed, promoted and dropped since, and need not be selected."""
    table, left = table_of_all_kinds(catalog)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == sorted(left)
    source = spark.read.format("icefield").options(**options).load("db.kinds")
    for frame in (ice.table("db.kinds"), source):
        assert {row["id"]: row["name"] for row in frame.collect()} == left
        found = frame.where("id between 55 and 85").select("name").collect()
        assert sorted(row["name"] for row in found) == sorted(left[id_] for id_ in left if 55 <= id_ <= 85)
    narrow = ice.table("db.kinds", where="id < 30", columns=["name"])
    assert sorted(row["name"] for row in narrow.collect()) == sorted(left[id_] for id_ in left if id_ < 30)
    places = ice.table("db.kinds", columns=["id", "_pos"]).collect()
    assert {(row["id"], row["_pos"]) for row in places} == {(id_, id_ % 20) for id_ in left}
    assert len(places) == len(left)
    assert len(plan_chunks(table.scan())) > 6


@pytest.mark.spark
@pytest.mark.slow
def test_a_frame_of_an_earlier_snapshot_has_the_rows_that_were_deleted_since(
    catalog: icefield.Catalog, spark: Any, ice: Any, options: dict[str, str]
) -> None:
    table = table_with_deletes(catalog, 3)
    states = [snapshot.snapshot_id for snapshot in table.snapshots()]
    wanted = [10, 20, 17, 15]
    for snapshot_id, rows in zip(states, wanted, strict=True):
        source = spark.read.format("icefield").options(**options, **{"snapshot-id": str(snapshot_id)})
        assert ice.table("db.deleted", snapshot_id=snapshot_id).count() == rows
        assert source.load("db.deleted").count() == rows

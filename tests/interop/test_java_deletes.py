"""Row-level deletes of Icefield and Iceberg's Java library on one table: each applies the deletes of the other.

The table is in a folder, where both commit: Java through ``HadoopTables``, Icefield through the directory catalog.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from catalogs import open_catalog
from icefield.catalog import Catalog, Table
from icefield.manifest import DataFileContent
from icefield.schema import schema_to_arrow
from plain_rows import comparable, plain_rows
from servers.java_iceberg import JavaIceberg

FORMATS = pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("value", pa.float64())])
LINEAGE = ("_row_id", "_last_updated_sequence_number")
MERGE_ON_READ = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog("rename", tmp_path) as opened:
        opened.create_namespace("db")
        yield opened


def new(catalog: Catalog, version: int, file_format: str, spec: Any = None, **properties: str) -> Table:
    given = {"format-version": str(version), "write.format.default": file_format, **MERGE_ON_READ, **properties}
    return catalog.create_table("db.t", SCHEMA, partition_spec=spec, properties=given)


def rows(ids: Any, value: float) -> list[dict[str, Any]]:
    return [{"id": id_, "part": "ab"[id_ % 2], "value": value} for id_ in ids]


def arrow(ids: Any, value: float) -> pa.Table:
    return pa.Table.from_pylist(rows(ids, value), schema=SCHEMA)


def place(table: Table) -> str:
    return table.location().removeprefix("file://")


def ours(table: Table) -> list[Any]:
    return comparable(plain_rows(table.refresh().scan().to_arrow(), table.schema()), table.schema())


def theirs(java: JavaIceberg, table: Table) -> list[Any]:
    return comparable(java.read(table.metadata_location), table.schema())


def contents(table: Table) -> set[DataFileContent]:
    return {delete.content for task in table.scan().plan_files() for delete in task.delete_files}


def positions_of(table: Table, row_filter: str) -> dict[str, list[int]]:
    """The positions of the rows that match, by data file, as Java names it."""
    found: dict[str, list[int]] = {}
    for row in table.refresh().scan(row_filter, selected_fields=("_file", "_pos")).to_arrow().to_pylist():
        found.setdefault(row["_file"], []).append(row["_pos"])
    return found


@FORMATS
@pytest.mark.parametrize(
    ("version", "granularity", "spec"), [(2, "file", None), (2, "partition", ["part"]), (3, "partition", ["part"])]
)
@pytest.mark.spec("VER-13", "DEL-01")
def test_java_reads_what_is_deleted_and_updated_by_position(
    folder: Catalog, java_iceberg: JavaIceberg, file_format: str, version: int, granularity: str, spec: Any
) -> None:
    table = new(folder, version, file_format, spec, **{"write.delete.granularity": granularity})
    for start in (0, 100):
        table.append(arrow(range(start, start + 100), 0.5))
    for change in (
        lambda: table.delete("id in (1, 2, 3, 150)"),
        lambda: table.delete("id > 190"),
        lambda: table.update("id < 20", {"value": 7.5}),
        lambda: table.upsert(arrow([5, 6, 500], 9.0), ["id"]),
        lambda: table.delete("value = 7.5 and id > 10"),
    ):
        change()
        assert theirs(java_iceberg, table) == ours(table) != []
    assert contents(table) == {DataFileContent.POSITION_DELETES}
    formats = {delete.file_format.lower() for task in table.scan().plan_files() for delete in task.delete_files}
    assert formats == ({file_format} if version == 2 else {"puffin"})


@FORMATS
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("VER-13", "DEL-01")
def test_what_java_deletes_by_position_is_read(
    folder: Catalog, java_iceberg: JavaIceberg, file_format: str, version: int
) -> None:
    table = new(folder, version, file_format)
    java_iceberg.append(place(table), file_format, rows(range(100), 0.5))
    java_iceberg.append(place(table), file_format, rows(range(100, 200), 0.5))
    java_iceberg.delete(place(table), file_format, positions_of(table, "id in (0, 7, 99, 100, 199)"))
    java_iceberg.delete(place(table), file_format, positions_of(table, "id < 10"), rows(range(10), 3.0))
    found = ours(table)
    assert found == theirs(java_iceberg, table)
    assert len(found) == 197
    assert table.scan("id < 10").to_arrow().column("value").to_pylist() == [3.0] * 10
    assert table.scan("id = 99").count() == 0


@FORMATS
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("VER-13", "DEL-02")
def test_what_java_deletes_by_equality_is_read(
    folder: Catalog, java_iceberg: JavaIceberg, file_format: str, version: int
) -> None:
    table = new(folder, version, file_format)
    java_iceberg.append(place(table), file_format, rows(range(50), 0.5))
    java_iceberg.delete_equal(place(table), file_format, ["id"], [{"id": id_} for id_ in (1, 2, 40, 1000)])
    java_iceberg.append(place(table), file_format, rows([1, 2], 2.0))
    java_iceberg.delete_equal(
        place(table), file_format, ["part", "value"], [{"part": "a", "value": 2.0}, {"part": "b", "value": None}]
    )
    found = ours(table)
    assert found == theirs(java_iceberg, table)
    assert len(found) == 48
    assert contents(table) == {DataFileContent.EQUALITY_DELETES}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.spec("VER-13", "ROW-03", "ROW-04")
def test_both_delete_in_turn_from_one_table_of_version_3(folder: Catalog, java_iceberg: JavaIceberg, seed: int) -> None:
    """Make 20 commits. Row ids are unique and never change, and both libraries give each row the same id."""
    draw = random.Random(seed)
    table = new(folder, 3, "parquet")
    table.append(arrow(range(100), 0.0))
    known: dict[int, int] = {}
    for step in range(1, 21):
        table.refresh()
        some = draw.sample(sorted(known) or range(100), 5)
        listed = f"id in ({', '.join(map(str, some))})"
        fresh = range(1000 * step, 1000 * step + 5)
        match (step % 2, draw.randrange(4)):
            case (0, 0):
                java_iceberg.append(place(table), "parquet", rows(fresh, step))
            case (0, 1):
                java_iceberg.delete(place(table), "parquet", positions_of(table, listed), rows(fresh, step))
            case (0, _):
                java_iceberg.delete(place(table), "parquet", positions_of(table, listed))
            case (_, 0):
                table.append(arrow(fresh, step))
            case (_, 1):
                table.upsert(arrow([*some, *fresh], step), ["id"])
            case (_, 2):
                table.update(listed, {"value": float(step)})
            case _:
                table.delete(listed)
        read = table.refresh().scan(selected_fields=("*", *LINEAGE)).to_arrow()
        schema = table.schema()
        said = java_iceberg.read(table.metadata_location, lineage=True)
        assert sorted((row["id"], *(row[name] for name in LINEAGE)) for row in said) == sorted(
            zip(*(read.column(name).to_pylist() for name in ("id", *LINEAGE)), strict=True)
        )
        assert comparable([{f.name: row[f.name] for f in schema.fields} for row in said], schema) == ours(table)
        ids = dict(zip(read.column("id").to_pylist(), read.column("_row_id").to_pylist(), strict=True))
        assert len(ids) == read.num_rows == len(set(ids.values()))
        assert all(ids[id_] == row_id for id_, row_id in known.items() if id_ in ids)
        known = ids
    assert contents(table) == {DataFileContent.POSITION_DELETES}
    assert schema_to_arrow(table.schema()).names == SCHEMA.names


@pytest.mark.spec("VER-13", "DEL-33", "DEL-34")
def test_java_reads_a_table_with_position_deletes_that_was_upgraded(folder: Catalog, java_iceberg: JavaIceberg) -> None:
    table = new(folder, 2, "parquet")
    for start in (0, 100, 200):
        table.append(arrow(range(start, start + 100), 0.5))
    table.delete("id in (5, 105, 205)")
    table.transaction().upgrade_table_version(3).commit_transaction()
    table.delete("id in (6, 7)")
    table.update("id = 106", {"value": 3.0})
    assert theirs(java_iceberg, table) == ours(table)
    java_iceberg.delete(place(table), "parquet", positions_of(table, "id in (8, 206)"))
    table.refresh().delete("id in (9, 207)")
    found = ours(table)
    assert theirs(java_iceberg, table) == found
    kinds = [sorted(delete.file_format.lower() for delete in task.delete_files) for task in table.scan().plan_files()]
    assert sorted(kinds)[-3:] == [["puffin"]] * 3
    assert table.scan().count() == 300 - 3 - 2 - 2 - 2

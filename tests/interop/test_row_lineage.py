"""The ids and last changes of rows, as DuckDB states them of the same tables; Java reads the files that hold them."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from icefield.catalog import Catalog, Table
from servers.java_iceberg import JavaIceberg

SCHEMA = pa.schema([("id", pa.int64()), ("value", pa.int64())])
COLUMNS = ("id", "_row_id", "_last_updated_sequence_number")


def rows(ids: list[int], value: int) -> pa.Table:
    return pa.table({"id": ids, "value": [value] * len(ids)}, schema=SCHEMA)


def ours(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan(selected_fields=COLUMNS).to_arrow().to_pylist())


def theirs(duck: Any, table: Table) -> list[tuple[Any, ...]]:
    location = table.metadata_location.removeprefix("file://")
    return sorted(duck.execute(f"SELECT {', '.join(COLUMNS)} FROM iceberg_scan('{location}')").fetchall())


@pytest.mark.spec("ROW-03", "ROW-04", "ROW-05", "ROW-06", "VER-13")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("partition_spec", [None, ["bucket[3](id)"]])
def test_ids_and_last_changes_after_changes_of_every_kind(
    catalog: Catalog, duck: Any, seed: int, partition_spec: Any
) -> None:
    draw = random.Random(seed)
    properties = {"format-version": "3", "commit.manifest.min-count-to-merge": "3"}
    table = catalog.create_table("db.t", SCHEMA, partition_spec=partition_spec, properties=properties)
    table.append(rows(list(range(20)), 0))
    for step in range(1, 9):
        some = draw.sample(range(60), 6)
        listed = f"id in ({', '.join(map(str, some))})"
        match draw.choice(["append", "delete", "upsert", "overwrite"]):
            case "append":
                table.append(rows([100 * step + n for n in some], step))
            case "delete":
                table.delete(listed)
            case "upsert":
                table.upsert(rows(some, step), ["id"])
            case _:
                table.overwrite(rows(some, step), listed)
        assert theirs(duck, table) == ours(table)
    assert len({row_id for _, row_id, _ in ours(table)}) == len(ours(table))


@pytest.mark.spec("ROW-05", "ROW-11", "VER-13")
def test_rows_from_before_the_upgrade(catalog: Catalog, duck: Any) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows([1, 2, 3], 0))
    table.transaction().upgrade_table_version(3).commit_transaction()
    table.append(rows([4], 0))
    table.delete("id = 2")
    assert theirs(duck, table) == ours(table)
    assert [row_id is not None for _, row_id, _ in ours(table)] == [True, True, True]


@pytest.mark.spec("ROW-06", "VER-13")
@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
def test_java_reads_files_that_hold_the_lineage_of_their_rows(
    catalog: Catalog, java_iceberg: JavaIceberg, file_format: str
) -> None:
    properties = {"format-version": "3", "write.format.default": file_format}
    table = catalog.create_table("db.t", SCHEMA, properties=properties)
    table.append(rows([1, 2, 3], 0))
    table.delete("id = 2")
    table.upsert(rows([3, 4], 5), ["id"])
    found = java_iceberg.read(table.metadata_location)
    assert sorted(found, key=lambda row: row["id"]) == [
        {"id": 1, "value": 0},
        {"id": 3, "value": 5},
        {"id": 4, "value": 5},
    ]
    given = {"type": "eq", "term": "id", "value": 3}
    assert java_iceberg.read(table.metadata_location, given) == [{"id": 3, "value": 5}]

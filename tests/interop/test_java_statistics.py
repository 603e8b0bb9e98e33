"""Statistics of Icefield and Iceberg's Java library: each reads and continues the statistics of the other.

The table is in a folder, where both commit: Java through ``HadoopTables``, Icefield through the directory catalog.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from catalogs import open_catalog
from icefield.catalog import Catalog, Table
from servers.java_iceberg import JavaIceberg

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("value", pa.int32())])
MERGE_ON_READ = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog("rename", tmp_path) as opened:
        opened.create_namespace("db")
        yield opened


def changed(catalog: Catalog, version: int, file_format: str) -> Table:
    """A table with deletes of each kind and of two partition specs."""
    given = {"format-version": str(version), "write.format.default": file_format, **MERGE_ON_READ}
    table = catalog.create_table("db.t", SCHEMA, partition_spec=["part"], properties=given)
    for part in ("b", "a", None):
        table.append(arrow(range(100), part))
    table.delete("id < 5 and part = 'a'")
    table.delete_by_equality(arrow([7, 8], "b").select(["id", "part"]), ["id", "part"])
    with table.update_spec() as update:
        update.add_field("value", "bucket[4]", "bucket")
    table.append(arrow(range(100, 120), "a"))
    return table


def arrow(ids: Any, part: str | None) -> pa.Table:
    rows = [{"id": id_, "part": part, "value": id_ % 3} for id_ in ids]
    return pa.table({name: pa.array([row[name] for row in rows], SCHEMA.field(name).type) for name in SCHEMA.names})


def place(table: Table) -> str:
    return table.location().removeprefix("file://")


def ours(table: Table) -> list[dict[str, Any]]:
    found = table.refresh().inspect.partition_statistics()
    assert found is not None
    return found.to_pylist()


def without_totals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Remove the number of remaining rows, which Java never states."""
    return [{name: value for name, value in row.items() if name != "total_record_count"} for row in rows]


def computed(table: Table, **given: Any) -> None:
    assert table.refresh().maintenance.compute_partition_stats(**given) is not None


@pytest.mark.parametrize("file_format", ["parquet", "avro"])  # Java's library writes and reads them in no other
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("PUF-11")
def test_java_reads_partition_statistics_and_computes_the_same(
    folder: Catalog, java_iceberg: JavaIceberg, file_format: str, version: int
) -> None:
    table = changed(folder, version, file_format)
    computed(table)
    path, read = java_iceberg.partition_stats(place(table))
    assert path.endswith(file_format)
    assert read == ours(table)
    table.update_statistics().remove_partition_statistics(table.current_snapshot().snapshot_id).commit()
    _, theirs = java_iceberg.partition_stats(place(table), compute=True)
    assert without_totals(theirs) == without_totals(read) == without_totals(ours(table))
    assert any(row["equality_delete_file_count"] for row in read)
    assert any(row["position_delete_record_count"] for row in read)
    assert version < 3 or any(row["dv_count"] for row in read)


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("PUF-11")
def test_partition_statistics_of_java_are_carried_on_and_by_java_those_of_icefield(
    folder: Catalog, java_iceberg: JavaIceberg, file_format: str, version: int
) -> None:
    table = changed(folder, version, file_format)
    java_iceberg.partition_stats(place(table), compute=True)
    for step in range(2):
        table.refresh().delete(f"id in ({20 + step}, {30 + step})")
        table.append(arrow(range(200, 210), "c"))
        computed(table)
        carried = ours(table)
        computed(table, incremental=False)
        assert [{**row, "last_updated_at": None, "last_updated_snapshot_id": None} for row in carried] == [
            {**row, "last_updated_at": None, "last_updated_snapshot_id": None} for row in ours(table)
        ]
        table.delete(f"id = {40 + step}")
        _, theirs = java_iceberg.partition_stats(place(table), compute=True)
        read = ours(table)
        computed(table, incremental=False)
        assert without_totals(theirs) == without_totals(read)
        assert [row["data_record_count"] for row in theirs] == [row["data_record_count"] for row in ours(table)]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("PUF-07")
def test_java_merges_sketches_of_distinct_values_with_its_own(
    folder: Catalog, java_iceberg: JavaIceberg, version: int
) -> None:
    table = changed(folder, version, "parquet")
    table.append(arrow(range(1000, 21000), "d"))
    made = table.maintenance.compute_table_stats(["id", "part", "value"])
    assert made is not None
    rows = {row.pop("column"): row for row in java_iceberg.sketches(place(table))}
    assert list(rows) == ["id", "part", "value"]
    for name in ("part", "value"):
        row = rows[name]
        assert float(row["ndv"]) == row["estimate"] == row["own"] == row["union"] == 3.0
    many = rows["id"]
    assert many["ndv"] == str(round(many["estimate"]))
    for number in (many["estimate"], many["own"], many["union"]):
        assert abs(number - 20120) < 0.05 * 20120
    # All sketches use one hash function; otherwise a union would have twice the number of values.
    assert {row["type"] for row in rows.values()} == {"apache-datasketches-theta-v1"}

"""Maintenance in turns with other implementations: the rows that each reads, and rewritten manifests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from catalogs import open_catalog
from icefield.catalog import Catalog, Table
from icefield.manifest import DataFileContent, ManifestContent
from peers import duckdb_rows, pyiceberg_catalog
from servers.java_iceberg import JavaIceberg
from tables import ids, manifests, rows

MERGE_ON_READ = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}
SEPARATE = {"commit.manifest-merge.enabled": "false"}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog("rename", tmp_path) as opened:
        opened.create_namespace("db")
        yield opened


def new(catalog: Catalog, version: int, spec: Any = ("kind",)) -> Table:
    given = {"format-version": str(version), **MERGE_ON_READ, **SEPARATE}
    table = catalog.create_table("db.t", rows([]).schema, partition_spec=list(spec), properties=given)
    for number in range(6):
        table.append(rows(range(20 * number, 20 * number + 20), "ab"[number % 2]))
    return table


def of_data(table: Table) -> int:
    return sum(one.content is ManifestContent.DATA for one in manifests(table))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("MAN-14")
def test_java_and_icefield_rewrite_manifests_in_turns(folder: Catalog, java_iceberg: JavaIceberg, version: int) -> None:
    table = new(folder, version)
    place = table.location().removeprefix("file://")

    def agree() -> None:
        found = java_iceberg.read(table.refresh().metadata_location, lineage=version > 2)
        assert sorted(row["id"] for row in found) == ids(table)
        if version > 2:
            columns = ("id", "_row_id", "_last_updated_sequence_number")
            own = table.scan(selected_fields=columns).to_arrow().to_pylist()
            assert sorted(tuple(row[name] for name in columns) for row in found) == sorted(
                tuple(row.values()) for row in own
            )

    for turn in range(2):
        table.delete(f"id in ({turn}, {20 + turn})")
        assert table.maintenance.rewrite_manifests().snapshot_id is not None
        assert of_data(table) == 1
        agree()
        java_iceberg.append(place, "parquet", [{"id": 500 + turn, "kind": "b", "value": 1.0}])
        table.refresh().append(rows([600 + turn], "a"))
        # Java writes a manifest for each value that it clusters by.
        assert java_iceberg.rewrite_manifests(place) == 2
        agree()
        table.append(rows([700 + turn], "a"))
        made = table.maintenance.rewrite_manifests()
        assert made.snapshot_id is not None
        assert of_data(table) == 1
        agree()


@pytest.mark.parametrize("version", [2, 3])
def test_java_reads_the_same_rows_after_each_maintenance_of_deletes(
    folder: Catalog, java_iceberg: JavaIceberg, version: int
) -> None:
    table = new(folder, version)

    def agree() -> None:
        assert sorted(row["id"] for row in java_iceberg.read(table.metadata_location)) == ids(table)

    expected = _with_deletes(table)
    agree()
    for maintenance in _maintenance(table):
        assert maintenance().snapshot_id is not None
        assert ids(table) == expected
        agree()


@pytest.mark.parametrize("version", [2, 3])
def test_duckdb_and_pyiceberg_read_the_same_rows_after_maintenance(
    catalog: Catalog, tmp_path: Path, duck: Any, version: int
) -> None:
    pytest.importorskip("pyiceberg")
    table = new(catalog, version)
    expected = _with_deletes(table)
    for maintenance in _maintenance(table):
        assert maintenance().snapshot_id is not None
        assert sorted(duckdb_rows(duck, table)["id"].to_pylist()) == ids(table) == expected
        kinds = {delete.content for task in table.scan().plan_files() for delete in task.delete_files}
        if DataFileContent.EQUALITY_DELETES not in kinds:  # which PyIceberg does not apply
            with pyiceberg_catalog(tmp_path) as theirs:
                read = theirs.load_table(table.name()).scan().to_arrow()
            assert sorted(read["id"].to_pylist()) == expected


def _with_deletes(table: Table) -> list[int]:
    for number in range(6):
        table.delete(f"id = {20 * number}")
    table.delete_by_equality(rows([1, 2, 41], "a").select(["id", "kind"]), ["id", "kind"])
    table.delete_by_equality(pa.table({"id": [25], "kind": ["gone"]}), ["id", "kind"])
    return [number for number in range(120) if number % 20 and number not in (1, 2, 41)]


def _maintenance(table: Table) -> list[Any]:
    return [
        lambda: table.maintenance.remove_dangling_deletes(),
        lambda: table.maintenance.rewrite_position_delete_files(min_input_files=2),
        lambda: table.maintenance.convert_equality_deletes(),
        lambda: table.maintenance.rewrite_manifests(),
    ]

"""Copies of tables, with metadata rewritten for other locations, as Java and PyIceberg read them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from catalogs import open_catalog
from icefield.catalog import Catalog, Table
from servers.java_iceberg import JavaIceberg
from tables import ids, rows

STATIC = pytest.importorskip("pyiceberg.table").StaticTable


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog("rename", tmp_path) as opened:
        opened.create_namespace("db")
        yield opened


def copied(table: Table, folder: Path) -> str:
    """Copy a table, remove the original, and return the location of the copy's metadata."""
    source = table.location()
    target = f"file://{folder}/copy"
    result = table.maintenance.rewrite_table_path(source, target)
    for place, goal in zip(*result.files.to_pydict().values(), strict=True):
        path = Path(urlsplit(goal).path)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(urlsplit(place).path, path)
    shutil.rmtree(urlsplit(source).path)
    return f"{target}/metadata/{result.latest_version}"


@pytest.mark.parametrize("version", [2, 3])
def test_others_read_a_copy_as_the_table(
    folder: Catalog, java_iceberg: JavaIceberg, tmp_path: Path, version: int
) -> None:
    given = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    table = folder.create_table("db.t", rows([]).schema, partition_spec=["kind"], properties=given)
    for number in range(3):
        table.append(rows(range(20 * number, 20 * number + 20), "ab"[number % 2]))
    table.delete("id in (3, 21, 41)")
    table.delete("id in (4, 22)")
    wanted, columns = ids(table), ("id", "_row_id", "_last_updated_sequence_number")
    lineage = table.scan(selected_fields=columns).to_arrow().to_pylist() if version > 2 else []
    location = copied(table, tmp_path)
    found = java_iceberg.read(location, lineage=version > 2)
    assert sorted(row["id"] for row in found) == wanted
    if version > 2:
        assert sorted(tuple(row[name] for name in columns) for row in found) == sorted(
            tuple(row.values()) for row in lineage
        )
    moved = STATIC.from_metadata(location)
    assert sorted(moved.scan().to_arrow()["id"].to_pylist()) == wanted

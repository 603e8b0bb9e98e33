"""PyIceberg and DuckDB read tables whose locations met, after random lives."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines import DuckDBEngine
from icefield import load_catalog
from location_judge import FilesOnDisk
from location_life import LocationLife

StaticTable = pytest.importorskip("pyiceberg.table").StaticTable
STEPS = 18


@pytest.mark.parametrize("kind", ["sql", "directory"])
def test_pyiceberg_and_duckdb_read_what_the_tables_hold_after_a_life(
    kind: str, tmp_path: Path, duck: DuckDBEngine
) -> None:
    read = 0
    for seed in range(6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        given = {"uri": "sqlite://"} if kind == "sql" else {}
        with load_catalog("lives", type=kind, warehouse=f"file://{folder}/wh", **given) as catalog:
            life = LocationLife(catalog, FilesOnDisk(folder), seed).live(STEPS)
            for table, rows in life.judge.judge_the_end():
                theirs = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()["id"].to_pylist()
                assert tuple(sorted(theirs)) == rows
                if table.current_snapshot() is not None:
                    found = duck.execute(f"SELECT id FROM iceberg_scan('{table.metadata_location}') ORDER BY id")
                    assert tuple(each[0] for each in found.fetchall()) == rows
                read += 1
    assert read > 6

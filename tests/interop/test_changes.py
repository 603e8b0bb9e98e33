"""Scans of appended rows, compared with PyIceberg's append scans."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from icefield.catalog import Catalog
from shared_with_spark import SCHEMA, arrow, fresh


@pytest.mark.spec("SCAN-50", "VER-13")
def test_pyiceberg_says_the_same_of_appends(catalog: Catalog, tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    from peers import pyiceberg_catalog

    table = catalog.create_table("db.t", SCHEMA, properties={"commit.manifest.min-count-to-merge": "2"})
    for start in (0, 10, 20):
        table.append(arrow(fresh(range(start, start + 5), 0.5)))
    table.update("id = 3", {"value": 1.0})
    table.delete("id in (10, 21)")
    table.append(arrow(fresh(range(30, 35), 0.5)))
    with table.update_schema() as update:
        update.add_column("extra", "int")
    snapshots = [snapshot.snapshot_id for snapshot in table.snapshots()]
    with pyiceberg_catalog(tmp_path) as theirs:
        peer = theirs.load_table("db.t")
        for begin, end in [(None, None), *combinations(snapshots, 2)]:
            bounds = {"from_snapshot_id_exclusive": begin, "to_snapshot_id_inclusive": end}
            ours = table.incremental_append_scan("id > 2", **bounds).to_arrow()  # type: ignore[arg-type]
            said = peer.incremental_append_scan(row_filter="id > 2", **bounds).to_arrow()
            assert ours.column_names == said.column_names
            assert sorted(ours.to_pylist(), key=repr) == sorted(said.to_pylist(), key=repr)

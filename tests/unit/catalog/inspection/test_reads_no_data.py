"""Tables about a table are made of its metadata alone."""

from __future__ import annotations

import pytest
from icefield.manifest.cache import clear_caches
from tables import live_files, new_table, rows


@pytest.mark.spec("SCAN-64")
def test_tables_about_a_table_are_there_when_its_data_is_not() -> None:
    table = new_table(["kind"])
    table.append(rows([1, 2]))
    table.append(rows([3], "b"))
    table.delete("id = 1")
    first, second, third = (snapshot.snapshot_id for snapshot in table.snapshots())
    table.manage_snapshots().create_tag(first, "v1").commit()
    current = sorted(task.file.file_path for task in table.scan().plan_files())
    data = [path for path in live_files(table) if "/data/" in path]
    assert set(current) < set(data)
    table.io.delete_many(data)
    clear_caches()
    inspect = table.inspect
    assert inspect.snapshots()["snapshot_id"].to_pylist() == [first, second, third]
    assert inspect.history()["snapshot_id"].to_pylist() == [first, second, third]
    assert dict(zip(*inspect.refs().select(["name", "snapshot_id"]).to_pydict().values(), strict=True)) == {
        "main": third,
        "v1": first,
    }
    assert {"added_data_files_count", "path"} <= set(inspect.manifests().column_names)
    assert len(inspect.manifests()) >= 1
    assert sorted(inspect.files()["file_path"].to_pylist()) == current
    assert sum(inspect.files()["record_count"].to_pylist()) == 2
    assert {row["status"] for row in inspect.entries().to_pylist()} <= {0, 1, 2}
    assert inspect.partitions()["record_count"].to_pylist() == [1, 1]

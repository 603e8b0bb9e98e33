"""A process is killed at every change that a commit makes on HDFS: the table opens at the old or at the new version."""

from __future__ import annotations

from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import Table, load_catalog
from icefield_hdfs import native
from killing import dies_at
from servers.hdfs import Hdfs

ROWS = pa.table({"id": pa.array(range(6), pa.int64())})
STEPS = [
    *((native.NativeClient, name) for name in ("create", "rename", "replace", "delete", "make_folder")),
    (native._NativeWriter, "close"),
]


def append(table: Table) -> None:
    table.append(ROWS)


@pytest.mark.slow
@pytest.mark.spec("COMMIT-02", "COMMIT-24", "FS-13", "FS-14", "META-01")
def test_a_table_on_hdfs_opens_after_a_kill_at_any_step(hdfs: Hdfs) -> None:
    given = {"type": "directory", "warehouse": f"{hdfs.url}/{uuid4().hex}", "commit": "rename"}
    made = load_catalog("test", **given)
    made.create_namespace("db")
    made.create_table("db.t", ROWS.schema)
    # This process looks over WebHDFS: its children would wait for the connections of its own reads to age.
    catalog = load_catalog("test", **given, **{f"location.map.{hdfs.url}": hdfs.web_url})
    before, seen = 0, set()
    for step in range(1, 200):
        died = dies_at(step, made, append, also=STEPS)
        found = catalog.load_table("db.t").scan().to_arrow().num_rows
        assert found in (before, before + len(ROWS)), f"a partial change is visible after step {step}"
        seen.add("old" if found == before else "new")
        before = found
        if not died:
            break
    assert seen == {"old", "new"}
    assert step > 20, "the walk took too few steps to have met the commit"
    # What the dead left behind is in nobody's way.
    made.load_table("db.t").append(ROWS)
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == before + len(ROWS)

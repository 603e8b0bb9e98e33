"""A process is killed at every change that a commit makes on HDFS: the table opens at the old or at the new version."""

from __future__ import annotations

import os
import traceback
from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield_hdfs import native
from killing import Steps, stepping
from servers.hdfs import Hdfs

ROWS = pa.table({"id": pa.array(range(6), pa.int64())})
CHANGES = ("create", "rename", "replace", "delete", "make_folder")


def dies_at(step: int, catalog: Catalog) -> bool:
    """Append in a process that dies at that step; False when it ended before."""
    process = os.fork()
    if process == 0:
        try:
            for name in CHANGES:
                setattr(native.NativeClient, name, stepping(getattr(native.NativeClient, name)))
            native._Writer.close = stepping(native._Writer.close)  # type: ignore[method-assign]
            table = catalog.load_table("db.t")
            Steps.done, Steps.deadly = 0, step
            table.append(ROWS)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitpid(process, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the append failed by itself"
    return os.WIFSIGNALED(status)


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
        died = dies_at(step, made)
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

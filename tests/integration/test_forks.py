"""A process that forks while its threads work: the children plan and read as after a fork without threads."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from icefield import Table, load_catalog

CHILDREN = 2_000 if os.environ.get("ICEFIELD_SOAK") else 15
SECONDS = 60


@contextmanager
def _at_work(table: Table) -> Iterator[None]:
    """Run threads that plan and read a table continually, and switch between them often."""
    stop = threading.Event()
    began = threading.Event()

    def work() -> None:
        while not stop.is_set():
            list(table.scan().plan_files())
            table.scan().to_arrow()
            began.set()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert began.wait(60)
        yield
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)


@pytest.mark.slow
@pytest.mark.counted
@pytest.mark.parametrize("file_format", ["avro", "parquet"])
def test_no_child_hangs_that_is_forked_while_a_thread_plans_and_reads(tmp_path: Path, file_format: str) -> None:
    catalog = load_catalog("forks", type="directory", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t",
        pa.schema([("id", pa.int64())]),
        properties={"write.format.default": file_format, "write.delete.mode": "merge-on-read"},
    )
    for number in range(4):
        table.append(pa.table({"id": [number, number + 100]}))
    table.delete("id = 100")
    table = catalog.load_table("db.t")
    expected = [0, 1, 2, 3, 101, 102, 103]
    with _at_work(table):
        for number in range(CHILDREN):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends a child that hangs
                    signal.alarm(SECONDS)
                    faulthandler.dump_traceback_later(SECONDS / 2, file=sys.__stderr__)  # says where
                    assert len(list(table.scan().plan_files())) == 4
                    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == expected
                    code = 0
                finally:
                    os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert code == 0, f"child {number} of {CHILDREN}: " + ("hung" if code == -signal.SIGALRM else f"{code}")

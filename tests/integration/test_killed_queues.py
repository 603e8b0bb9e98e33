"""A process is killed at every step while threads append through a queue: no acknowledged row is lost or doubled."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from catalogs import properties_of
from icefield import Table, load_catalog
from killing import STATEMENTS, SWAP, dies_at

THREADS = 3
APPENDS = 1
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int64())])


@pytest.mark.slow
@pytest.mark.spec("COMMIT-02", "COMMIT-24")
@pytest.mark.parametrize("kind", ["sql", "create"])
def test_acknowledged_appends_survive_a_kill_at_any_step_of_a_queue(kind: str, tmp_path: Path) -> None:
    given = properties_of(kind, tmp_path)
    catalog = load_catalog("test", **given)
    catalog.create_namespace("db")
    catalog.create_table("db.t", SCHEMA, partition_spec=["part"], properties={"commit.retry.min-wait-ms": "1"})
    log = tmp_path / "acknowledged"
    shared = 0
    for step in range(1, 500):

        def append(table: Table, step: int = step) -> None:
            queue = table.append_queue()
            said = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

            def work(thread: int) -> None:
                for number in range(APPENDS):
                    made = 1_000 * step + 10 * thread + number
                    queue.append(pa.table({"id": [made, made], "part": [0, 1]}, schema=SCHEMA))
                    os.write(said, f"{made}\n".encode())

            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(work, range(THREADS)))

        died = dies_at(step, given, append, also=(*SWAP, *STATEMENTS))
        table = load_catalog("test", **given).load_table("db.t")
        found = Counter(table.scan().to_arrow()["id"].to_pylist())
        acknowledged = {int(line) for line in log.read_text().split()} if log.exists() else set()
        assert acknowledged <= set(found), f"an acknowledged append is lost after step {step}"
        assert set(found.values()) <= {2}, f"an append is there twice, or in part, after step {step}"
        shared = max(shared, len(found) - len(table.snapshots()))
        if not died:
            break
    else:
        pytest.fail("the appends have more steps than the harness walks")
    assert len(acknowledged) >= THREADS * APPENDS
    assert shared > 0, "no appends shared a commit"
    assert step > 8

"""A pipeline of streams whose whole driver is killed, again and again: every row is there once, and no garbage."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import icefield
import pytest

JOB = Path(__file__).with_name("streaming_job.py")
KILLS = 20 if os.environ.get("ICEFIELD_SOAK") else 3


class Run:
    """The job in a process group of its own."""

    def __init__(self, folder: Path, batches: int = 0) -> None:
        self._errors = (folder / "errors.txt").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, str(JOB), str(folder), str(batches)],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            cwd=folder,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.decode())

    def wait_for_batches(self, count: int, seconds: float = 300) -> None:
        """Until some batches are through."""
        deadline = time.monotonic() + seconds
        while len(self.lines) < count:
            assert self.process.poll() is None, "the job ended of its own accord; see errors.txt"
            assert time.monotonic() < deadline, "the job does not come to its first batch"
            time.sleep(0.02)

    def kill(self) -> None:
        """The driver, the JVM and all their workers at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)
        self._reader.join(60)
        self._errors.close()


@pytest.mark.slow
@pytest.mark.counted
@pytest.mark.parametrize("catalog_type", ["directory"])
def test_every_row_is_in_both_tables_once_however_often_the_driver_is_killed(tmp_path: Path, catalog_type: str) -> None:
    properties = {"type": catalog_type, "warehouse": f"file://{tmp_path}/warehouse", "file.sync": "false"}
    (tmp_path / "catalog.json").write_text(json.dumps(properties))
    chance = random.Random(os.environ.get("ICEFIELD_SEED", "20261123"))
    for _ in range(KILLS):
        run = Run(tmp_path)
        try:
            run.wait_for_batches(chance.randint(1, 4))
            time.sleep(chance.uniform(0, 1.5))  # somewhere in the batch that runs now
        finally:
            run.kill()
    last = time.time() * 1000
    run = Run(tmp_path, batches=4)
    try:
        assert run.process.wait(300) == 0, (tmp_path / "errors.txt").read_text()[-4_000:]
    finally:
        if run.process.poll() is None:
            run.kill()
    with icefield.load_catalog("lake", **properties) as catalog:
        first, second = (catalog.load_table(f"db.{name}") for name in ("first", "second"))
        rows = sorted(first.scan().to_arrow()["value"].to_pylist())
        assert rows == list(range(len(rows)))
        assert len(rows) > KILLS
        copied = sorted(second.scan().to_arrow()["value"].to_pylist())
        assert len(copied) == len(set(copied))
        assert set(copied) <= set(rows)
        assert copied[: len(copied) // 2] == rows[: len(copied) // 2]
        for table in (first, second):
            found = table.maintenance.remove_orphan_files(older_than=int(last), dry_run=True, allow_recent=True)
            assert found.orphans["location"].to_pylist() == []

"""A pipeline of streams whose whole driver is killed, again and again: every row is there once, and no garbage."""

from __future__ import annotations

import contextlib
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
# Each start takes a JVM, and each batch several processes of Python: `make soak` has the many.
KILLS, LAST_BATCHES = (20, 4) if os.environ.get("ICEFIELD_SOAK") else (1, 2)
# Spark waits ten seconds for a worker to start, whatever else the machine does: such an end is one more kill.
LATE = "Python worker failed to connect back"


class Run:
    """The job in a process group of its own."""

    def __init__(self, folder: Path, batches: int = 0) -> None:
        self._path = folder / "errors.txt"
        self._errors = self._path.open("wb")
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
            if self.process.poll() is not None:
                assert self.ended_late(), f"the job ended of its own accord: {self.said()}"
                return
            assert time.monotonic() < deadline, "the job does not come to its first batch"
            time.sleep(0.02)

    def said(self) -> str:
        """The end of what the job wrote about errors."""
        return self._path.read_text(errors="replace")[-4_000:]

    def ended_late(self) -> bool:
        """Whether the job ended since Spark did not wait for a worker."""
        return self.process.poll() not in (None, 0) and LATE in self._path.read_text(errors="replace")

    def kill(self) -> None:
        """The driver, the JVM and all their workers at once."""
        with contextlib.suppress(ProcessLookupError):
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
    for tries_left in reversed(range(5)):
        last = time.time() * 1000
        run = Run(tmp_path, batches=LAST_BATCHES)
        try:
            run.process.wait(300)
        finally:
            run.kill()
        if run.process.returncode == 0:
            break
        assert run.ended_late(), run.said()
        assert tries_left, "Spark never waited long enough for a worker"
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

"""Servers of tests end with the tests, however the process that ran the tests ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from servers.process import running

SUPPORT = Path(__file__).parents[1] / "support"
# A server that leaves a process behind in a session of its own, and starts another.
SERVER = """
sh -c 'setsid sh -c "echo \\$\\$ > left; exec sleep 600" & exit'
sh -c 'echo $$ > child; exec sleep 600' &
echo $$ > server
while :; do sleep 1; done
"""
STUBBORN = f"trap '' TERM\n{SERVER}"
ALL = ("left", "child", "server")
# A thread starts the server and ends at once: the kernel's signal for the death of "the parent" arrives at that time.
TESTS = """
import sys, threading, time
from pathlib import Path
from servers.process import running

folder, command = Path(sys.argv[1]), ["sh", "-c", sys.argv[2]]
blocks = []

def start():
    blocks.append(running(command, lambda: all((folder / n).exists() for n in {names}), folder=folder))
    blocks[0].__enter__()

thread = threading.Thread(target=start)
thread.start()
thread.join()
time.sleep(1)
(folder / "started").write_text("")
time.sleep(600)
"""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="orphans have a new parent of one's choice on Linux only"
)


def started(folder: Path) -> list[int]:
    return [int((folder / name).read_text()) for name in ALL]


def lives(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # one whose parent does not look after it has ended all the same


def gone_within(seconds: float, processes: list[int]) -> bool:
    deadline = time.monotonic() + seconds
    while any(lives(process) for process in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.slow
def test_a_server_ends_with_its_block_and_so_does_all_that_it_started(tmp_path: Path) -> None:
    with running(["sh", "-c", STUBBORN], lambda: all((tmp_path / name).exists() for name in ALL), folder=tmp_path):
        processes = started(tmp_path)
        assert all(lives(process) for process in processes)
    assert not any(lives(process) for process in processes)


@pytest.mark.slow
def test_a_server_ends_when_the_tests_are_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TESTS.replace("{names}", repr(ALL)), str(tmp_path), SERVER]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(SUPPORT)}) as tests:
        try:
            deadline = time.monotonic() + 60
            while not (tmp_path / "started").exists():
                assert tests.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            processes = started(tmp_path)
            assert all(lives(process) for process in processes), "ended with the thread that started it"
        finally:
            tests.send_signal(signal.SIGKILL)
    assert gone_within(60, processes)


def test_a_server_that_does_not_start_states_why(tmp_path: Path) -> None:
    with (
        pytest.raises(pytest.fail.Exception, match="sh did not become ready; it said: no such disk"),
        running(["sh", "-c", "echo no such disk; exit 3"], lambda: False, folder=tmp_path),
    ):
        pass

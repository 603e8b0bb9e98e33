"""Runs a server, and ends it and all its descendants: on request, and when the test process is gone.

``python keeper.py PID COMMAND...``, started by the process PID. A test process that is killed cannot end its servers.
The operating system's parent-death signal comes when the thread that started the server ends, and does not reach
grandchildren. The keeper therefore polls its parent's id. It adopts processes that a server's scripts leave behind, so
it can end them all.

Its exit code is the server's. ``SIGTERM`` ends all processes, and ``SIGINT`` is passed on to the server.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_LOOK = 0.2
_GRACE = 10.0
_PR_SET_CHILD_SUBREAPER = 36
_PROCESSES = Path("/proc")


def main(parent: int, command: list[str]) -> int:
    """Run the command until it ends, the parent is gone or ``SIGTERM`` comes."""
    _adopt_orphans()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        server = subprocess.Popen(command)
        signal.signal(signal.SIGINT, lambda number, _: server.send_signal(number))
        while os.getppid() == parent:
            ended, status = os.waitpid(-1, os.WNOHANG)  # the server, or an adopted process
            if ended == server.pid:
                return os.waitstatus_to_exitcode(status) % 256
            if not ended:
                time.sleep(_LOOK)
        return 1
    finally:
        _end()


def _end() -> None:
    """End every descendant: ask it to end, and kill it if it is still running after a while."""
    signal.signal(signal.SIGTERM, lambda *_: None)
    _signal_all(signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    while _has_children():
        if time.monotonic() > deadline:
            _signal_all(signal.SIGKILL)
        time.sleep(0.02)


def _has_children() -> bool:
    """Reap children that have ended, and return whether others still run."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def _signal_all(number: signal.Signals) -> None:
    if not _PROCESSES.exists():
        os.killpg(0, number)  # no more is known than the group, which is this process's own
        return
    for process in _descendants():
        with suppress(ProcessLookupError):
            os.kill(process, number)


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in _PROCESSES.iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                after_its_name = (folder / "stat").read_text().rpartition(")")[2]
                children.setdefault(int(after_its_name.split()[1]), []).append(int(folder.name))
    found = list(children.get(os.getpid(), []))
    for process in found:  # which grows meanwhile
        found += children.get(process, [])
    return found


def _adopt_orphans() -> None:
    """Become the parent of orphaned descendants, where the system supports that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))

"""What a piece of work costs: CPU and elapsed time, peak memory and requests to storage."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icefield.storage import FileIO

_PROCESS = Path("/proc/self")


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run: seconds of CPU of all threads and child processes, elapsed seconds, and requests.

    ``memory`` is the peak resident size of the process in MiB during the run, 0 outside of Linux.
    """

    cpu: float
    wall: float
    memory: int
    requests: int


_requests = 0
_find = FileIO._found


def _counted(io: FileIO, location: str) -> Any:
    global _requests
    _requests += 1
    return _find(io, location)


FileIO._found = _counted  # type: ignore[method-assign]  # every request asks it for the file system of a location


def measured(work: Callable[[], Any], *, collecting: bool = False) -> Cost:
    """Run the work once. Garbage is collected before it; during it only with ``collecting``, as by default in Python.

    With ``collecting``, code that makes many objects pays for that as well.
    """
    gc.collect()
    if not collecting:
        gc.disable()
    try:
        _forget_peak()
        requests, wall, cpu = _requests, time.perf_counter(), _cpu()
        work()
        return Cost(_cpu() - cpu, time.perf_counter() - wall, _peak(), _requests - requests)
    finally:
        gc.enable()


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _forget_peak() -> None:
    if (_PROCESS / "clear_refs").exists():
        (_PROCESS / "clear_refs").write_text("5")


def _peak() -> int:
    if not _PROCESS.exists():
        return 0
    lines = (_PROCESS / "status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024

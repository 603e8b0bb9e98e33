"""Limits of the CPU time and memory of a call: a hostile file or server must not stop or exhaust a reader."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 2.0
MEGABYTES = 300

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


@contextmanager
def bounded(seconds: float = SECONDS, megabytes: int = MEGABYTES) -> Iterator[None]:
    """Fail when the block takes more CPU seconds, or more megabytes than were in use before it.

    The peak memory of the process is reset first, which only Linux supports; elsewhere only the time is compared.
    """
    linux = _CLEAR.exists()
    if linux:
        _CLEAR.write_text("5")
    before = _memory("VmRSS") if linux else 0
    started = time.process_time()
    yield
    taken = time.process_time() - started
    assert taken < seconds, f"{taken:.1f} seconds of CPU where {seconds} are the most"
    grown = (peak_memory() // 1024 - before) // 1024 if linux else 0
    assert grown < megabytes, f"{grown} MiB where {megabytes} are the most"


def peak_memory() -> int:
    """The peak memory of this process in bytes. ``ru_maxrss`` starts at the peak of the parent process."""
    if _STATUS.exists():
        return _memory("VmHWM") * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _memory(name: str) -> int:
    """A field of the process's status, in KiB."""
    lines = _STATUS.read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name + ":")).split()[1])

"""The memory that this process may use."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

# The limit of a container, by version 2 and 1 of control groups.
_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_limit() -> int:
    """The bytes of memory of the machine, or of its container if it has less; 2 GiB if neither is known."""
    found = [limit for path in _LIMITS if (limit := _number_in(path))]
    with suppress(AttributeError, ValueError, OSError):  # Windows
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=2 << 30)


def _number_in(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # there is no control group, or it has no limit
        return None

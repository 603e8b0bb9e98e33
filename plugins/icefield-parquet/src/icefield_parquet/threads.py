"""The threads that finish columns, one set for all readers of a process.

Threads that end leave memory behind which the next ones do not find; these stay.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final

import pyarrow as pa

_MOST: Final = 8


def thread_count() -> int:
    """How many columns are finished at once: as many as the library decodes, at most eight."""
    return max(1, min(_MOST, pa.cpu_count()))


@cache
def threads() -> ThreadPoolExecutor:
    """The threads of this process, which start when there is work for them."""
    return ThreadPoolExecutor(thread_count(), thread_name_prefix="icefield-parquet")


if hasattr(os, "register_at_fork"):
    # Threads are not there in a child: it makes its own.
    os.register_at_fork(after_in_child=threads.cache_clear)

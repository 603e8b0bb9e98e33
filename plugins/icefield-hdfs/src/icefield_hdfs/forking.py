"""Reading in the child of a fork.

hdfs-native keeps idle connections to data nodes for three seconds, in one pool for a whole process, and a fork copies
it. In the child, a read over such a connection would wait for ever, and disturb the parent. The child therefore waits
until the connections are too old to be used.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Final

from icefield.toolkit import reset_after_fork

_KEPT: Final = 3.3  # seconds, and somewhat more


class Reads:
    """The reads of a process: which threads read, and when one was last done."""

    def __init__(self) -> None:
        self._threads: set[int] = set()
        self._last = 0.0
        self._safe_from = 0.0
        reset_after_fork(self._in_child)

    @contextmanager
    def one(self) -> Iterator[None]:
        """A context for a read, which begins when connections of the parent are too old to be used."""
        if self._safe_from:
            time.sleep(max(0.0, self._safe_from - time.monotonic()))
        self._threads.add(get_ident())
        try:
            yield
        finally:
            self._last = time.monotonic()
            self._threads.discard(get_ident())

    def _in_child(self) -> None:
        last = time.monotonic() if self._threads else self._last
        self._safe_from = max(self._safe_from, last + _KEPT) if last else self._safe_from
        self._threads = set()


READS: Final = Reads()

"""Local disk that answers as slowly as an object store, and counts its requests: ours and PyIceberg's."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from icefield.builtin.local import LocalFileSystem, _LocalOutput
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO


class Requests:
    """Requests by kind; each of them waits first."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def make(self, kind: str) -> None:
        """Count a request, and wait as long as one takes."""
        with self._lock:
            self.counts[kind] += 1
        if self.seconds:
            time.sleep(self.seconds)

    def taken(self) -> str:
        """The counts since they were last taken, to be printed."""
        with self._lock:
            text = ", ".join(f"{number} {kind}" for kind, number in sorted(self.counts.items()))
            self.counts.clear()
        return text


@contextmanager
def slow_local(seconds: float) -> Iterator[Requests]:
    """Let each request to a ``file`` location wait: reading or writing a file whole, a look at one, a deletion."""
    requests = Requests(seconds)

    def slowly(kind: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*args: Any, **kwargs: Any) -> Any:
            requests.make(kind)
            return real(*args, **kwargs)

        return asked

    ours = {"open_input": "reads", "put": "writes", "stat": "looks", "rename": "renames"}
    with (
        patch.multiple(LocalFileSystem, **{n: slowly(kind, getattr(LocalFileSystem, n)) for n, kind in ours.items()}),
        # A stream is one request, when it is closed.
        patch.object(_LocalOutput, "close", slowly("writes", _LocalOutput.close)),
        patch.object(LocalFileSystem, "delete_many", slowly("deletions", LocalFileSystem.delete_many)),
        patch.object(PyArrowFile, "open", slowly("reads", PyArrowFile.open)),
        patch.object(PyArrowFile, "create", slowly("writes", PyArrowFile.create)),
        patch.object(PyArrowFile, "exists", slowly("looks", PyArrowFile.exists)),
        patch.object(PyArrowFileIO, "delete", slowly("deletions", PyArrowFileIO.delete)),
    ):
        yield requests

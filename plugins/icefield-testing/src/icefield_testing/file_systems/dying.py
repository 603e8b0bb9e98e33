"""The script of a process that dies while it writes. A fresh interpreter runs this file, so it imports little."""

from __future__ import annotations

import pickle
import signal
import sys
import traceback
from typing import Final

from icefield.abc import FileSystem, PutMode

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

NOT_LOADED: Final = 97
"""The exit status of a fresh interpreter that could not load the file system."""


def write_and_die(writer: FileSystem, location: str, mode: str | None, data: bytes) -> None:
    """Write by ``put`` in a mode, or by a stream without one.

    The system kills this process when a file has half of the data.
    """
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, and raises an OSError instead
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(data) // 2, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    if mode is not None:
        writer.put(location, data, PutMode(mode))
        return
    with writer.open_output(location) as sink:
        sink.write(data)


if __name__ == "__main__":
    try:
        given = pickle.load(sys.stdin.buffer)
    except BaseException:
        traceback.print_exc()
        sys.exit(NOT_LOADED)
    write_and_die(*given)

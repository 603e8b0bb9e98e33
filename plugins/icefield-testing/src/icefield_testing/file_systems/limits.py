"""Limits of the operating system as faults: unlike a patch in Python, they affect libraries in every language."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

_DESCRIPTORS: Final = Path("/dev/fd")
_STANDARD_STREAMS: Final = 3


@contextmanager
def store_out_of_reach(before: frozenset[str]) -> Iterator[None]:
    """During the block, this process can open no file and no socket, and write to no file.

    Connections that were opened after ``sockets`` returned ``before`` are broken.
    """
    _needs_limits()
    break_connections(before)
    files, sizes = resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, sizes[1]))
        # The limit is not 0: the system refuses to wait for more connections than there may be files.
        resource.setrlimit(resource.RLIMIT_NOFILE, (_STANDARD_STREAMS, files[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
        resource.setrlimit(resource.RLIMIT_FSIZE, sizes)


def break_connections(before: frozenset[str]) -> None:
    """Break all connections that are not in ``before``, in any library."""
    for name, number in _sockets().items():
        if name in before:
            continue
        with suppress(OSError), socket.socket(fileno=os.dup(number)) as connection:
            if connection.family in (socket.AF_INET, socket.AF_INET6):
                connection.shutdown(socket.SHUT_RDWR)


def sockets() -> frozenset[str]:
    """The sockets of this process."""
    return frozenset(_sockets())


def _sockets() -> dict[str, int]:
    found = {}
    for name in os.listdir(_DESCRIPTORS) if _DESCRIPTORS.exists() else ():
        with suppress(OSError):
            status = os.fstat(int(name))
            if stat.S_ISSOCK(status.st_mode):
                found[f"{status.st_dev}:{status.st_ino}"] = int(name)
    return found


def _needs_limits() -> None:
    if resource is None:
        pytest.skip("this system has no limits of files to make a store fail with: give a method `outage`")

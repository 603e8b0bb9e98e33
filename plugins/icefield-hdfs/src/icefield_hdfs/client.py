"""What both ways to HDFS do, in a few steps by path; the file systems are built on these.

A step raises ``FileNotFoundError`` and ``FileExistsError`` for what is there or is not, and ``HdfsFailure`` for the
rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


class HdfsFailure(Exception):
    """HDFS failed: what is said of it, whether trying again can help, and whether a right is wanting.

    ``kind`` is the server's own name of the error, where it gave one.
    """

    def __init__(self, said: str, *, passing: bool, denied: bool = False, kind: str = "") -> None:
        super().__init__(said)
        self.said = said
        self.passing = passing
        self.denied = denied
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Status:
    """What HDFS knows of a path."""

    path: str
    is_folder: bool
    size: int
    modified_ms: int


class Reader(Protocol):
    """A file open for reading."""

    size: int

    def read_range(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` to before ``end``."""


class Writer(Protocol):
    """A file being written. It may be visible meanwhile, under the name that it was created with."""

    def write(self, data: bytes | bytearray) -> None:
        """Append."""

    def close(self) -> None:
        """Have the file complete on as many nodes as HDFS asks for."""

    def give_up(self) -> None:
        """Let go of it, so that it can be deleted. Raises nothing."""


class Client(Protocol):
    """The steps."""

    def open(self, path: str) -> Reader:
        """Open a file."""

    def create(self, path: str) -> Writer:
        """Create a file that nobody else knows of, and its folders."""

    def status(self, path: str) -> Status:
        """What is there."""

    def children(self, path: str) -> Iterator[Status]:
        """What is directly in a folder; of a file, itself."""

    def delete(self, path: str) -> None:
        """Delete a file; one that is not there is no error."""

    def make_folder(self, path: str) -> None:
        """Create a folder and those above it, where they are missing."""

    def rename(self, source: str, target: str) -> None:
        """Rename in one atomic step that refuses to replace."""

    def replace(self, source: str, target: str) -> None:
        """Rename and replace what has the name."""

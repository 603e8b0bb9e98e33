"""The operations that both clients of HDFS offer, by path; the file systems are built on them.

An operation raises ``FileNotFoundError`` for a missing file, ``FileExistsError`` for an existing one, and
``HdfsFailure`` for every other error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


class HdfsFailure(Exception):
    """An error of HDFS: its message, whether a retry can help, and whether a permission is missing.

    ``kind`` is the server's own name for the error, if it gave one.
    """

    def __init__(self, said: str, *, passing: bool, denied: bool = False, kind: str = "") -> None:
        super().__init__(said)
        self.said = said
        self.passing = passing
        self.denied = denied
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a path in HDFS."""

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
    """A file being written. The file may be visible before ``close``, under the name that it was created with."""

    def write(self, data: bytes | bytearray) -> None:
        """Append."""

    def close(self) -> None:
        """Wait until the file is complete on the number of nodes that HDFS requires."""

    def give_up(self) -> None:
        """Stop writing, so that the file can be deleted. Raises nothing."""


class Client(Protocol):
    """The steps."""

    def open(self, path: str) -> Reader:
        """Open a file."""

    def create(self, path: str) -> Writer:
        """Create a file under a name that no other process knows, and its folders."""

    def status(self, path: str) -> Status:
        """Return the status of a file or folder."""

    def children(self, path: str) -> Iterator[Status]:
        """Iterate over the direct children of a folder; a file yields itself."""

    def delete(self, path: str) -> None:
        """Delete a file; a missing file is no error."""

    def make_folder(self, path: str) -> None:
        """Create a folder and its missing parents."""

    def rename(self, source: str, target: str) -> None:
        """Rename in one atomic step that refuses to replace."""

    def replace(self, source: str, target: str) -> None:
        """Rename a file and replace the target, if it exists."""

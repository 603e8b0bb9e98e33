"""The cost of scans: bytes that are read, and requests, from metadata alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icefield.metadata import TableMetadata

REQUEST_BYTES: Final = 4 << 20
"""The bytes that a store delivers in the time of a request: 50 ms at 80 MiB/s."""


@dataclass(frozen=True, slots=True)
class ScanCost:
    """The requests and bytes of a scan of a whole table, or a difference of two costs."""

    requests: int = 0
    bytes: int = 0

    @property
    def weight(self) -> int:
        """The cost as one number: bytes, and ``REQUEST_BYTES`` for each request."""
        return self.bytes + REQUEST_BYTES * self.requests

    def __add__(self, other: ScanCost) -> ScanCost:
        return ScanCost(self.requests + other.requests, self.bytes + other.bytes)

    def __sub__(self, other: ScanCost) -> ScanCost:
        return ScanCost(self.requests - other.requests, self.bytes - other.bytes)


def scan_cost(metadata: TableMetadata) -> ScanCost:
    """The cost of a scan of the current snapshot, by its summary: a request for each data and delete file."""
    snapshot = metadata.current_snapshot()
    if snapshot is None:
        return ScanCost()
    files = total(snapshot.summary.get("total-data-files")) + total(snapshot.summary.get("total-delete-files"))
    return ScanCost(files, total(snapshot.summary.get("total-files-size")))


def total(text: str | None) -> int:
    """A total of a summary; 0 where it is missing or damaged."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 19 else 0

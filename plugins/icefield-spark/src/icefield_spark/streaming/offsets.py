"""The position of a stream in a table's history: the offsets that Spark keeps in a query's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from icefield.errors import InvalidArgument

VERSION: Final = 1
BEFORE_ALL: Final = -1
"""In place of a snapshot's id: before the first snapshot of the table."""

AFTER, WITH, STATE = "after", "with", "state"
_BEGINNINGS: Final = (AFTER, WITH, STATE)


@dataclass(frozen=True, slots=True)
class Origin:
    """The start of a stream: after a snapshot, with the rows that it added, or with all of its rows."""

    snapshot: int
    begin: str


@dataclass(frozen=True, slots=True)
class Offset:
    """A position in a stream: everything before it was read.

    ``snapshot``: the last snapshot that was read, at least in part; None before the stream begins. ``files``: the
    number of its files that were read, in the order of their paths; None for all. ``state``: whether ``files`` counts
    all files of the snapshot, rather than only its added files. ``origin``: the start of the stream, in the first
    offset that it reached: a repeated batch begins there even if the table has changed.
    """

    snapshot: int | None = None
    files: int | None = None
    state: bool = False
    origin: Origin | None = None

    def to_json(self) -> dict[str, Any]:
        """The offset as Spark keeps it."""
        found: dict[str, Any] = {"version": VERSION, "snapshot": self.snapshot, "files": self.files}
        if self.state:
            found["state"] = True
        if self.origin is not None:
            found["origin"] = self.origin.snapshot
            found["begin"] = self.origin.begin
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Offset:
        """An offset of a checkpoint. Raises ``InvalidArgument`` if another source or a later version wrote it."""
        if found.get("version") != VERSION:
            raise InvalidArgument(
                f"the checkpoint holds an offset that this version does not know: {dict(found)}; it was written by "
                f"another source, or by a later version of Icefield (offsets here are of version {VERSION})"
            )
        if "snapshot_id" in found:
            raise InvalidArgument(
                "the checkpoint holds an offset of Iceberg's Java runtime, which counts files in an order of its own: "
                f"begin with another checkpoint and the option stream-from-snapshot-id; it stands at {dict(found)}"
            )
        origin = found.get("origin")
        begin = found.get("begin", WITH)
        numbers = (found.get("snapshot"), found.get("files"), origin)
        if begin not in _BEGINNINGS or any(each is not None and not isinstance(each, int) for each in numbers):
            raise InvalidArgument(f"the checkpoint holds a damaged offset: {dict(found)}")
        return cls(
            found.get("snapshot"),
            found.get("files"),
            bool(found.get("state", False)),
            None if origin is None else Origin(origin, begin),
        )

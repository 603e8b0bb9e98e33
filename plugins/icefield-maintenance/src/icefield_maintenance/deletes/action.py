"""The base of all rewrites of delete files: each attempt evaluates its base anew, and changes no row."""

from __future__ import annotations

from icefield.engine import FileChanges, SnapshotProducer
from icefield.metadata import Operation


class DeleteMaintenance(SnapshotProducer):
    """Exchanges or drops delete files.

    Each attempt evaluates the head that it builds on: its delete files, and the data files to which they apply. So
    concurrent commits count, including files with an older sequence number. An attempt reuses the reads and files of
    an earlier attempt if the same deletes apply to the same data files.
    """

    def operation(self, changes: FileChanges) -> Operation:
        """The rows stay the same."""
        return Operation.REPLACE

    @property
    def committed_id(self) -> int | None:
        """The id of the snapshot, while the last attempt changes anything."""
        return self._snapshot_id if self._changes else None

    _changes: bool = False

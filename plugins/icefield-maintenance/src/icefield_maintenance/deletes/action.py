"""What rewrites of delete files have in common: they are evaluated anew on each base, and change no row."""

from __future__ import annotations

from icefield.metadata import Operation
from icefield.transaction.snapshot_producer import FileChanges, SnapshotProducer


class DeleteUpkeep(SnapshotProducer):
    """Exchanges or drops delete files.

    Each attempt looks at the head that it builds on: which delete files there are, and to which data files they apply.
    So whatever was committed meanwhile counts, files with an older sequence number included; what was read and written
    for an attempt serves the next one where the same deletes apply to the same files.
    """

    def operation(self, changes: FileChanges) -> Operation:
        """The rows stay the same."""
        return Operation.REPLACE

    @property
    def committed_id(self) -> int | None:
        """The id of the snapshot, while the last attempt changes anything."""
        return self._snapshot_id if self._changes else None

    _changes: bool = False

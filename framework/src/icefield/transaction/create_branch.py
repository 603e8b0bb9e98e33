"""Creates a branch at the current snapshot; in a table without snapshots it begins with an empty one."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from icefield.metadata import TableMetadata
from icefield.metadata.refs import SnapshotRef
from icefield.metadata.remembered import following
from icefield.metadata.snapshots import Operation
from icefield.metadata.updates import SetSnapshotRef
from icefield.transaction.action import Action, ActionContext, Changes
from icefield.transaction.branch_head import Head
from icefield.transaction.snapshot_producer import FileChanges, SnapshotProducer, same_table


class CreateBranch(SnapshotProducer):
    """Create a branch at the current snapshot, or at a new empty one. ``options`` say how long the branch is kept."""

    _may_be_empty = True

    def __init__(self, stage: Callable[[Action], None], name: str, options: SnapshotRef) -> None:
        super().__init__(stage, branch=None)
        self._name = name
        self._options = options

    def _target(self, base: TableMetadata) -> str | None:
        """No branch yet: the snapshot is added, and then named."""
        return None

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """Name the current snapshot, or add one and name that."""
        made = Changes((), same_table(base))
        snapshot_id = base.current_snapshot_id
        if snapshot_id is None:
            made = super().apply(base, context)
            snapshot_id = self._snapshot_id
        ref = msgspec.structs.replace(self._options, snapshot_id=snapshot_id)
        memory = () if made.updates or snapshot_id is None else following(base, {self._name: snapshot_id})
        return Changes((*made.updates, SetSnapshotRef(self._name, ref), *memory), made.requirements)

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """No file."""
        return FileChanges()

    def operation(self, changes: FileChanges) -> Operation:
        """None is removed."""
        return Operation.APPEND

"""Updates of branches and tags."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from icefield.errors import InvalidArgument
from icefield.metadata.refs import MAIN_BRANCH, SnapshotRef
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import TableDrafts


@dataclass(frozen=True, slots=True)
class SetSnapshotRef:
    """Create or move a branch or tag. Moving ``main`` makes its snapshot the current one."""

    name: str
    ref: SnapshotRef
    action: ClassVar[str] = "set-snapshot-ref"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        name, ref = self.name, self.ref
        if not isinstance(name, str) or not name.strip():
            raise InvalidArgument("a branch or tag must have a name")
        if not metadata.snapshots.has(ref.snapshot_id):
            raise InvalidArgument(f"'{name}' cannot refer to snapshot {ref.snapshot_id}, which does not exist")
        if name == MAIN_BRANCH and (ref.is_tag or ref.max_ref_age_ms is not None):
            raise InvalidArgument("'main' must be a branch, and never expires")
        if metadata.refs.get(name) == ref:
            return metadata
        changed = replace(metadata, refs=change.with_ref(metadata.refs, name, ref))
        return replace(changed, current_snapshot_id=ref.snapshot_id) if name == MAIN_BRANCH else changed


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRef:
    """Remove a branch or tag; a missing ref is no error. Removing ``main`` leaves no current snapshot."""

    name: str
    action: ClassVar[str] = "remove-snapshot-ref"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        if self.name not in metadata.refs:
            return metadata
        changed = replace(metadata, refs=change.with_ref(metadata.refs, self.name, None))
        if self.name != MAIN_BRANCH:
            return changed
        # A change that ends like this empties the log: see ``MetadataBuilder``.
        return replace(changed, current_snapshot_id=None)

"""Taking over the change of a snapshot that lies on another branch, or was staged for an audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.manifest import schemas as f
from icefield.manifest.columns import ALL_COLUMNS
from icefield.manifest.data_file import EntryStatus
from icefield.manifest.manifest_file import ManifestContent
from icefield.metadata import TableMetadata
from icefield.refs import MAIN_BRANCH
from icefield.snapshots import Operation, Snapshot
from icefield.transaction.action import Action, ActionContext
from icefield.transaction.append import AddedFiles
from icefield.transaction.conflicts import entries_by
from icefield.transaction.head import Head
from icefield.transaction.history import is_ancestor
from icefield.transaction.snapshot_producer import FileChanges, SnapshotProducer

_SOURCE = "source-snapshot-id"
_STAGED, _PUBLISHED = "wap.id", "published-wap-id"


class CherryPick(SnapshotProducer):
    """Append the files that a snapshot appended, in a new snapshot of the branch that names its source.

    Raises ``InvalidArgument`` for a snapshot that did more than append, that the branch holds already, or that was
    picked before; ``NoSuchSnapshot`` for one that the table does not have.
    """

    def __init__(
        self,
        stage: Callable[[Action], None],
        snapshot_id: int,
        *,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(stage, branch=branch, snapshot_properties=snapshot_properties)
        self._source = snapshot_id

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files that the source added."""
        source = self._checked(head.metadata, head.snapshot)
        self._texts[_SOURCE] = str(source.snapshot_id)
        if _STAGED in source.summary:
            self._texts[_PUBLISHED] = source.summary[_STAGED]
        added = AddedFiles()
        theirs = Head(head.metadata, source, head.io)
        for _, manifest in theirs.live(ManifestContent.DATA):
            if manifest.added_snapshot_id == source.snapshot_id:
                entries = theirs.entries(manifest, ALL_COLUMNS)
                new = entries_by(entries, {source.snapshot_id}) & (entries.status() == EntryStatus.ADDED)
                added.add(entries.select(ALL_COLUMNS - {f.FIRST_ROW_ID}).filter(new).data_files())
        added.refuse_live(head)
        return FileChanges(added.files())

    def operation(self, changes: FileChanges) -> Operation:
        """Files are added and none removed."""
        return Operation.APPEND

    def _checked(self, metadata: TableMetadata, head: Snapshot | None) -> Snapshot:
        source = metadata.snapshot_by_id(self._source)
        if source is None:
            raise NoSuchSnapshot(f"the table has no snapshot {self._source}", snapshot_id=self._source)
        if source.operation is not Operation.APPEND:
            raise InvalidArgument(
                f"snapshot {self._source} is of operation '{source.operation}'; only an append can be picked",
                snapshot_id=self._source,
            )
        head_id = head.snapshot_id if head is not None else None
        if is_ancestor(metadata, self._source, head_id):
            raise InvalidArgument(f"the branch holds snapshot {self._source} already", snapshot_id=self._source)
        staged = source.summary.get(_STAGED)
        for snapshot in metadata.ancestors(head_id):
            summary = snapshot.summary
            if summary.get(_SOURCE) == str(self._source) or (staged and staged == summary.get(_PUBLISHED)):
                raise InvalidArgument(
                    f"snapshot {self._source} was picked before, by snapshot {snapshot.snapshot_id}",
                    snapshot_id=snapshot.snapshot_id,
                )
        return source

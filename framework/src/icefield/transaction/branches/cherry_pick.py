"""Publishes a staged snapshot, or takes over the change of a snapshot of another branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.expressions import AlwaysTrue
from icefield.manifest import schemas as f
from icefield.manifest.columns import ALL_COLUMNS
from icefield.manifest.data_file import DataFile, EntryStatus
from icefield.manifest.manifest_file import ManifestContent
from icefield.metadata import MAIN_BRANCH, RefType, RemoveSnapshotRef, SetSnapshotRef, SnapshotRef, TableMetadata
from icefield.metadata.remembered import published_by, remembering
from icefield.metadata.snapshots import (
    PUBLISHED_WAP_ID,
    REPLACE_PARTITIONS,
    SOURCE_SNAPSHOT_ID,
    STAGED_WAP_ID,
    Operation,
    Snapshot,
)
from icefield.scan.planning.manifest_filter import entries_by
from icefield.transaction.action import Action, ActionContext, Changes
from icefield.transaction.conflicts import ConflictFilter, ConflictRange, Conflicts
from icefield.transaction.files.append import AddedFiles
from icefield.transaction.head.branch_head import Head, Mask, head_of
from icefield.transaction.head.filtering import RowFilter
from icefield.transaction.head.matching import NamedFiles, PartitionSet
from icefield.transaction.snapshots.snapshot_producer import FileChanges, SnapshotProducer


class CherryPick(SnapshotProducer):
    """Make the change of a snapshot the next change of a branch.

    If the snapshot's parent is the head of the branch, the branch moves to the snapshot itself. Otherwise a new
    snapshot, which names its source, takes over the files of an append, or of a dynamic partition overwrite if its
    partitions have not changed. Any other change depends on the rows that it met, and is refused.

    Raises ``InvalidArgument`` for a snapshot that cannot be taken over, that the branch holds already, or with a
    ``wap.id`` that was published before; ``ValidationFailed`` for partitions that changed; ``NoSuchSnapshot``.
    """

    _may_be_empty = True  # the new snapshot records the published one

    def __init__(
        self,
        stage: Callable[[Action], None],
        snapshot_id: int | None,
        *,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        if branch is None:
            raise InvalidArgument("a snapshot is cherry-picked onto a branch; name one")
        super().__init__(stage, branch=branch, snapshot_properties=snapshot_properties)
        self._source_id = snapshot_id

    def _is_filled(self) -> bool:
        return True

    def source(self, metadata: TableMetadata) -> Snapshot:
        """The snapshot to take over. Raises ``NoSuchSnapshot``."""
        found = None if self._source_id is None else metadata.snapshot_by_id(self._source_id)
        if found is None:
            raise NoSuchSnapshot(f"the table has no snapshot {self._source_id}", snapshot_id=self._source_id)
        return found

    def _target(self, base: TableMetadata) -> str | None:
        """The branch, even with ``write.wap.enabled``: a published change is not staged again."""
        return self._branch

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """Move the branch to the source if that follows its head; otherwise add a snapshot with its files."""
        source, head, branch = self.source(base), head_of(base, self._branch), self._branch or MAIN_BRANCH
        _refuse_published(base, source, branch)
        if source.parent_snapshot_id != (None if head is None else head.snapshot_id):
            return self._while_there_is(source.snapshot_id, super().apply(base, context))
        self._begin(base, context)
        self._assembler.finish()
        moved = self._moved(base, branch, source.snapshot_id)
        return Changes((moved, *remembering(base, branch, [source])))

    def _while_there_is(self, source_id: int, changes: Changes) -> Changes:
        """Make a service refuse the change once the source has expired, since expiry deletes the files of the source.

        No requirement of the REST protocol says that a snapshot exists. So the change sets a tag of the source and
        removes it again, which fails without the snapshot.
        """
        name = f"icefield-picked-{self._snapshot_id}"
        held = SetSnapshotRef(name, SnapshotRef(source_id, RefType.TAG))
        return replace(changes, updates=(held, *changes.updates, RemoveSnapshotRef(name)))

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files that the source added, and the files that it replaced."""
        source = self.source(head.metadata)
        replaces = source.summary.get(REPLACE_PARTITIONS, "").lower() == "true"
        if source.operation is not Operation.APPEND and not (replaces and source.operation is Operation.OVERWRITE):
            raise InvalidArgument(
                f"snapshot {source.snapshot_id} is of operation '{source.operation}' and its parent is not the head "
                f"of branch '{self._branch}': only an append, a dynamic partition overwrite or a snapshot whose "
                "parent is the head can be picked; make the change again",
                snapshot_id=source.snapshot_id,
            )
        self._strings[SOURCE_SNAPSHOT_ID] = str(source.snapshot_id)
        if source.summary.get(STAGED_WAP_ID):
            self._strings[PUBLISHED_WAP_ID] = source.summary[STAGED_WAP_ID]
        self._operation = source.operation
        added, removed = _changed_files(head, source)
        added.refuse_live(head)
        if not replaces:
            return FileChanges(added.files())
        self._strings[REPLACE_PARTITIONS] = "true"
        _refuse_changed(head, ConflictRange(source.parent_snapshot_id), added.files())
        gone = removed.find(head, (ManifestContent.DATA,))
        removed.require_all(head, gone, f"cannot take snapshot {source.snapshot_id} over")
        return FileChanges(added.files(), gone)

    def operation(self, changes: FileChanges) -> Operation:
        """The operation of the source."""
        return self._operation


class PublishChanges(CherryPick):
    """``CherryPick`` of the snapshot that was staged under a ``wap.id``."""

    def __init__(self, stage: Callable[[Action], None], wap_id: str) -> None:
        if not isinstance(wap_id, str) or not wap_id:
            raise InvalidArgument(f"a staged change is named by its {STAGED_WAP_ID}, a string, not by {wap_id!r}")
        super().__init__(stage, None)
        self._wap_id = wap_id

    def source(self, metadata: TableMetadata) -> Snapshot:
        """The snapshot of that ``wap.id``. Raises ``NoSuchSnapshot``, or ``InvalidArgument`` for several."""
        found = [snapshot for snapshot in metadata.snapshots if snapshot.summary.get(STAGED_WAP_ID) == self._wap_id]
        if not found:
            raise NoSuchSnapshot(f"the table has no snapshot with the {STAGED_WAP_ID} '{self._wap_id}'")
        if len(found) > 1:
            numbers = ", ".join(str(snapshot.snapshot_id) for snapshot in found[:5])
            raise InvalidArgument(
                f"{len(found)} snapshots have the {STAGED_WAP_ID} '{self._wap_id}': {numbers}"
                f"{', ...' if len(found) > 5 else ''}; publish one of them with cherry_pick"
            )
        return found[0]


def _refuse_published(metadata: TableMetadata, source: Snapshot, branch: str) -> None:
    number, wap_id = source.snapshot_id, source.summary.get(STAGED_WAP_ID)
    if number in metadata.ancestor_ids(metadata.head(branch)):
        raise InvalidArgument(f"the branch holds snapshot {number} already", snapshot_id=number)
    found = published_by(metadata, branch, number, wap_id)
    if found is None:
        return
    key, other = found
    if key == SOURCE_SNAPSHOT_ID:
        raise InvalidArgument(f"snapshot {number} was picked before, by snapshot {other}", snapshot_id=other)
    raise InvalidArgument(
        f"the {STAGED_WAP_ID} '{wap_id}' of snapshot {number} was published before, by snapshot {other}",
        snapshot_id=other,
    )


def _changed_files(head: Head, source: Snapshot) -> tuple[AddedFiles, NamedFiles]:
    """The data files that a snapshot added and removed."""
    added, removed = AddedFiles(), NamedFiles()
    theirs = Head(head.metadata, source, head.io)
    manifests = [
        manifest
        for manifest in theirs.manifests
        if manifest.content is ManifestContent.DATA and manifest.added_snapshot_id == source.snapshot_id
    ]
    for entries in theirs.read(manifests, ALL_COLUMNS):
        mine, status = entries_by(entries, {source.snapshot_id}), entries.status()
        # Row ids are assigned anew: the ids of the source are not of this branch.
        new: Mask = np.asarray(mine & (status == EntryStatus.ADDED))
        added.add(entries.select(ALL_COLUMNS - {f.FIRST_ROW_ID}).filter(new).data_files())
        gone = pa.array(mine & (status == EntryStatus.DELETED))
        removed.add(*entries.column(f.FILE_PATH).filter(gone).to_pylist())
    return added, removed


def _refuse_changed(head: Head, since: ConflictRange, files: list[DataFile]) -> None:
    """Raise ``ValidationFailed`` when the partitions of the files have changed."""
    whole_table = any(head.spec(file.spec_id).is_unpartitioned for file in files)
    concern: ConflictFilter = RowFilter(head, AlwaysTrue()) if whole_table else PartitionSet(head, files)
    conflicts = Conflicts(head, since)
    conflicts.no_new_data(concern)
    conflicts.no_new_deletes(concern)
    conflicts.no_removed_data(concern)

"""The base of every action that makes a snapshot: its manifests, its manifest list, its summary."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import InvalidArgument
from icefield.manifest import DataFile, DataFileContent, ManifestContent, ManifestFile, write_manifest_list
from icefield.manifest import schemas as f
from icefield.metadata import MAIN_BRANCH, AddEncryptionKey, AddSnapshot, SetSnapshotRef, TableMetadata
from icefield.metadata.properties import MANIFEST_MERGE_ENABLED, WRITE_WAP_ENABLED, get_bool
from icefield.metadata.refs import branch as new_branch
from icefield.metadata.remembered import remembering
from icefield.metadata.requirements import AssertRefSnapshotID
from icefield.metadata.snapshots import STAGED_WAP_ID, Operation, Snapshot
from icefield.scan.deletes.targets import DELETE_STATISTICS, data_files_of
from icefield.storage import LocationProvider
from icefield.storage.encrypted_files import check_key_length
from icefield.transaction.action import Action, ActionContext, Changes
from icefield.transaction.head.branch_head import Head, checked_branch, head_of, merged_masks, next_row_id
from icefield.transaction.snapshots.manifests import ManifestAssembler, Numbers, Remaining
from icefield.transaction.snapshots.summary import ChangeCounter
from icefield.transaction.snapshots.write_result import EditedRows, WriteResult, authorship


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The changes of a snapshot to the files of one base.

    ``removed`` holds masks of removed entries, by a manifest's position in the base's list. ``data_sequence_number`` is
    the number of the added files, if they do not take the commit's.
    """

    added: Sequence[DataFile] = ()
    removed: Mapping[int, np.ndarray[Any, Any]] = field(default_factory=dict)
    data_sequence_number: Numbers | None = None


class SnapshotProducer(Action):
    """An action that adds a snapshot to a branch, or stages it with ``branch=None``: then no branch names it.

    A table with ``write.wap.enabled`` also stages changes of ``main`` that have a ``wap.id`` in their summary. A
    subclass states the files to add and remove on a given base (``find``).
    """

    shapes = False
    merges: ClassVar[bool] = True
    """Whether small manifests are merged when the table's properties ask for it."""

    _may_be_empty: ClassVar[bool] = False
    """Whether a snapshot is made even where no file changes."""

    def __init__(
        self,
        stage: Callable[[Action], None],
        *,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(stage)
        self._branch = checked_branch(branch)
        self._strings: dict[str, str] = {}
        if not isinstance(snapshot_properties, Mapping | None):
            raise InvalidArgument(f"snapshot_properties map names to strings; this is {snapshot_properties!r:.200}")
        for name, value in (snapshot_properties or {}).items():
            self.set_snapshot_property(name, value)
        self.write_result = WriteResult()
        """The result, which is complete when the change is committed."""
        self._follows = False
        self._edited: EditedRows | None = None
        self._assembler = ManifestAssembler()
        self._snapshot_id: int | None = None
        self._lists: list[str] = []
        self._prepare()

    def _prepare(self) -> None:
        """Set up the fields of the subclass."""

    def follow(self, first: SnapshotProducer) -> Self:
        """Add this snapshot's counts to the result of an earlier action of the same write."""
        self.write_result, self._follows = first.write_result, True
        return self

    def count_rows(self, inserted: int, updated: int, deleted: int | None) -> None:
        """State the numbers of changed rows, for the result; ``deleted`` is None if files are removed unread."""
        self._edited = EditedRows(inserted, updated, deleted)

    @abstractmethod
    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The changes of the files at the head of the branch. Raises ``ValidationFailed`` if they are not valid."""

    def operation(self, changes: FileChanges) -> Operation:
        """The operation in the summary: the actual effect of the change, unless a subclass says otherwise."""
        data = sum(file.content is DataFileContent.DATA for file in changes.added)
        if not changes.removed and data == len(changes.added):
            return Operation.APPEND
        return Operation.OVERWRITE if data else Operation.DELETE

    def set_snapshot_property(self, name: str, value: str) -> Self:
        """Put a string of the caller's into the summary. Raises ``InvalidArgument`` for any other value."""
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"the name of a snapshot property must be a non-empty string, not {name!r}")
        if not isinstance(value, str):
            raise InvalidArgument(f"snapshot property '{name}' must be a string, not {type(value).__name__}")
        self._strings[name] = value
        return self

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """Write the manifests (once) and the list (on each attempt), and add the snapshot. Nothing for no change."""
        check_key_length(context.io.key_length)
        if not self._follows:
            self.write_result.clear()
        branch = self._target(base)
        head = Head(base, head_of(base, branch), context.io)
        snapshot_id = self._begin(base, context)
        changes = without_dangling_deletes(head, self.find(head, context))
        if self._is_needless(changes):
            self._assembler.finish()
            return Changes()
        snapshot, keys = self._snapshot(head, changes, context, snapshot_id)
        self.write_result.count(snapshot_id, snapshot.summary, self._edited)
        self._assembler.finish()
        if branch is None:
            # A service that merges commits by their requirements may expire the parent of this snapshot.
            head_id = None if head.snapshot is None else head.snapshot.snapshot_id
            return Changes((*keys, AddSnapshot(snapshot)), (AssertRefSnapshotID(MAIN_BRANCH, head_id),))
        moved = self._moved(base, branch, snapshot.snapshot_id)
        return Changes((*keys, AddSnapshot(snapshot), moved, *remembering(base, branch, [snapshot])))

    def _is_needless(self, changes: FileChanges) -> bool:
        """Whether no snapshot is to be made."""
        return not (changes.added or changes.removed or self._may_be_empty)

    def _entries_processed(self, changes: FileChanges) -> int:
        """The number of manifest entries that were carried into other manifests, for the summary."""
        return sum(len(gone) for gone in changes.removed.values())

    def _totals_before(self, head: Head) -> Mapping[str, str] | None:
        """The summary with the totals to carry on; None if there is no snapshot."""
        return None if head.snapshot is None else head.snapshot.summary

    def _target(self, base: TableMetadata) -> str | None:
        """The branch that the snapshot goes to; None stages it. Raises ``InvalidArgument`` where that is ambiguous."""
        if STAGED_WAP_ID not in self._strings or not get_bool(base.properties, WRITE_WAP_ENABLED):
            return self._branch
        if not self._strings[STAGED_WAP_ID]:
            raise InvalidArgument(f"the {STAGED_WAP_ID} of a change is empty; name the change, or leave it out")
        if self._branch not in (None, MAIN_BRANCH):
            raise InvalidArgument(
                f"a change goes to the branch '{self._branch}' or is staged under the {STAGED_WAP_ID} "
                f"'{self._strings[STAGED_WAP_ID]}', not both; leave one of them out"
            )
        return None

    def _begin(self, base: TableMetadata, context: ActionContext) -> int:
        """Begin an attempt; the id of its snapshot."""
        context.written.retire(*self._lists)
        if self._snapshot_id is None or base.snapshot_by_id(self._snapshot_id) is not None:
            self._snapshot_id = base.new_snapshot_id()
        context.snapshots.add(self._snapshot_id)
        self._assembler.begin(base, context, self._snapshot_id)
        return self._snapshot_id

    def _moved(self, base: TableMetadata, branch: str, snapshot_id: int) -> SetSnapshotRef:
        ref = base.ref(branch) or new_branch(snapshot_id)
        return SetSnapshotRef(branch, msgspec.structs.replace(ref, snapshot_id=snapshot_id))

    def _snapshot(
        self, head: Head, changes: FileChanges, context: ActionContext, snapshot_id: int
    ) -> tuple[Snapshot, list[AddEncryptionKey]]:
        """Write the manifests and the manifest list; the snapshot, and the keys to add for its list."""
        base, parent_id = head.metadata, None if head.snapshot is None else head.snapshot.snapshot_id
        counter = ChangeCounter(base, authorship(context.io.properties, self._strings))
        counter.added(changes.added)
        new = self._assembler.of_added(changes.added, changes.data_sequence_number)
        kept = self._remaining(head, changes, counter, len(new))
        if kept is not None or self._is_merging(base):
            # The manifests of a spliced list are not counted: the list would have to be decoded for that.
            _count_manifests(head, kept, new, self._entries_processed(changes), counter)
        first_row_id = next_row_id(base, context.io) if base.format_version >= 3 else None
        name = f"snap-{snapshot_id}-{len(self._lists)}-{context.marker}{self._assembler.uuid}.avro"
        location = LocationProvider.from_metadata(base).metadata_location(name)
        self._lists.append(location)
        context.written.add(location)
        written, following = write_manifest_list(
            context.io,
            location,
            new if kept is None else [*kept, *new],
            format_version=base.format_version,
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=base.next_sequence_number(),
            first_row_id=first_row_id,
            base=head.manifest_list if kept is None else None,
        )
        keys = () if written.key is None else context.io.encryption.store_key(base, written.key)
        snapshot = Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=base.next_sequence_number(),
            timestamp_ms=base.next_timestamp_ms(),
            summary=counter.builder.build(
                self.operation(changes),
                self._totals_before(head),
                partition_limit=counter.partition_limit,
            ),
            manifest_list=location,
            schema_id=base.current_schema_id,
            first_row_id=first_row_id,
            added_rows=following - first_row_id if following is not None and first_row_id is not None else None,
            key_id=keys[-1].key_id if keys else None,
        )
        return snapshot, [AddEncryptionKey(key) for key in keys]

    def _is_merging(self, base: TableMetadata) -> bool:
        return self.merges and get_bool(base.properties, MANIFEST_MERGE_ENABLED)

    def _remaining(
        self, head: Head, changes: FileChanges, counter: ChangeCounter, new: int
    ) -> list[ManifestFile] | None:
        """The manifests of the base that stay, some of them rewritten; None when its list stays as it is."""
        merging = self._is_merging(head.metadata)
        if not changes.removed and not merging:
            return None
        parts: list[Remaining] = []
        for position, manifest in enumerate(head.manifests):
            gone = changes.removed.get(position)
            # A manifest without live files is of no use once the list is written anew.
            if gone is not None or manifest.has_added_files or manifest.has_existing_files or not changes.removed:
                parts.append(Remaining(manifest, gone))
        remaining = self._assembler.remaining(parts, new, merging=merging, removed=counter.removed)
        return None if not changes.removed and len(remaining) == len(head.manifests) else remaining


def without_dangling_deletes(head: Head, changes: FileChanges) -> FileChanges:
    """The changes, and with each removed data file the deletes of this file alone.

    A deletion vector, or a position delete file of one data file, would stay for nothing once the file is gone.
    """
    manifests = head.live(ManifestContent.DELETES) if changes.removed else []
    if not manifests:
        return changes
    gone: list[pa.Array] = []
    data = [one for one in changes.removed if head.manifests[one].content is ManifestContent.DATA]
    for position, entries in zip(data, head.read([head.manifests[one] for one in data]), strict=True):
        gone.append(entries.column(f.FILE_PATH).filter(pa.array(changes.removed[position])))
    paths = pa.concat_arrays(gone) if gone else pa.array([], pa.string())
    dangling = head.find(
        manifests if len(paths) else [],
        lambda entries: np.asarray(pc.is_in(data_files_of(entries), value_set=paths, skip_nulls=True)),
        DELETE_STATISTICS,
    )
    return replace(changes, removed=merged_masks(changes.removed, dangling))


def _count_manifests(
    head: Head, kept: list[ManifestFile] | None, new: list[ManifestFile], processed: int, counter: ChangeCounter
) -> None:
    before = len(head.manifests)
    if kept is None:
        counter.builder.manifests(created=len(new), kept=before)
        return
    old = {manifest.manifest_path for manifest in head.manifests}
    untouched = sum(manifest.manifest_path in old for manifest in kept)
    counter.builder.manifests(
        created=len(new) + len(kept) - untouched,
        kept=untouched,
        replaced=before - untouched,
        entries_processed=processed,
    )

"""Detects commits since a snapshot was read that break a change made from it.

Each validation of an action excludes some interleavings. All validations together give serializable isolation; the
weakest level only requires that removed files are still live. Only commits between the snapshot that was read and the
head of the branch are examined. Spec: "Optimistic Concurrency", "Commit Conflict Resolution and Retry".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.base.concurrency import lazy
from icefield.errors import InvalidArgument, ValidationFailed
from icefield.manifest import DataFile, DataFileContent, EntryStatus, ManifestContent, ManifestEntries, ManifestFile
from icefield.manifest import schemas as f
from icefield.metadata.snapshots import Operation, Snapshot
from icefield.scan.deletes.index import delete_index
from icefield.scan.deletes.targets import DELETE_STATISTICS
from icefield.scan.planning.manifest_filter import entries_by, manifest_lists
from icefield.transaction.head.branch_head import Head, Mask
from icefield.transaction.head.matching import NamedFiles, PartitionSet


class IsolationLevel(StrEnum):
    """The concurrent changes that a change tolerates."""

    SERIALIZABLE = "serializable"
    """Fails when rows that the change would have seen were added, changed or removed meanwhile."""

    SNAPSHOT = "snapshot"
    """Fails when rows that the change touches were changed or removed meanwhile; added rows are tolerated."""

    @classmethod
    def of(cls, value: IsolationLevel | str | None) -> IsolationLevel | None:
        """The level that a string names. Raises ``InvalidArgument``."""
        try:
            return None if value is None else cls(value.lower())
        except (ValueError, AttributeError):
            raise InvalidArgument(f"an isolation level is 'serializable' or 'snapshot', not {value!r}") from None


@dataclass(frozen=True, slots=True)
class ConflictRange:
    """The snapshot that a change was made from; None is the table before its first snapshot.

    ``own``: snapshots of the same transaction, which are no conflict.
    """

    snapshot_id: int | None
    own: Collection[int] = ()


class ConflictFilter(Protocol):
    """The files that a change concerns: files that a filter may match, or files of some partitions."""

    def read(self, manifests: Sequence[ManifestFile]) -> Iterator[ManifestEntries]:
        """The entries of manifests, in their order and read ahead, with the columns needed to judge them."""

    def may_match(self, entries: ManifestEntries) -> Mask:
        """A mask of the entries that the change concerns."""


_ADDING: Final = (Operation.APPEND, Operation.OVERWRITE)
_REMOVING: Final = (Operation.OVERWRITE, Operation.DELETE)
_DELETING: Final = (Operation.APPEND, Operation.OVERWRITE, Operation.DELETE)


class Conflicts:
    """The commits to the head of a branch since a snapshot was read.

    Each method raises ``ValidationFailed`` for the commits that break a change. ``remedy`` ends the message: the option
    with which the change would be made all the same.
    """

    def __init__(self, head: Head, since: ConflictRange | None) -> None:
        """``since`` is None if the snapshot is not known, which only ``require_all`` and ``no_other_vectors`` allow."""
        self._head, self._since = head, since

    def no_new_data(self, concern: ConflictFilter, remedy: str = "") -> None:
        """Refuse added files that the change is concerned with."""
        self._refuse_added(concern, ManifestContent.DATA, _ADDING, "data was added", remedy)
        self._refuse_added_and_rewritten(concern, "data was added", remedy)

    def no_new_deletes(self, concern: ConflictFilter, remedy: str = "") -> None:
        """Refuse added row-level deletes that the change is concerned with."""
        self._refuse_added(concern, ManifestContent.DELETES, _DELETING, "row-level deletes were added", remedy)

    def no_removed_data(self, concern: ConflictFilter, remedy: str = "") -> None:
        """Refuse removed files that the change is concerned with."""
        for entries in concern.read(self._own_manifests(self._others(*_REMOVING))):
            self._refuse_any(concern, entries, _removed_here(entries), "data was removed", remedy)

    def require_all(self, named: NamedFiles, found: Mapping[int, Mask], what: str) -> None:
        """Refuse a change that removes files which are not live any more.

        If the snapshot that was read is known, the error names the later snapshot that removed them.
        """
        try:
            named.require_all(self._head, found, f"cannot remove {what}")
        except ValidationFailed as error:
            if self._since is None:
                raise
            missing: Collection[str] = error.data["files"]
            for content in ManifestContent:
                removed = self.removed_files(missing, content)
                self._refuse_removed(removed, f"{what} that this change removes were removed")
            raise

    def removed_files(
        self, paths: Collection[str], content: ManifestContent = ManifestContent.DATA
    ) -> dict[str, Snapshot]:
        """The files that were removed meanwhile, rewritten ones included, each with the snapshot that removed it."""
        if not paths:
            return {}
        removing = [snapshot for snapshot in self._later if snapshot.operation is not Operation.APPEND]
        by_id = {snapshot.snapshot_id: snapshot for snapshot in removing}
        wanted, found = pa.array([*paths], pa.string()), dict[str, Snapshot]()
        for entries in self._head.read(self._own_manifests(removing, content)):
            mask = _removed_here(entries)
            mask[mask] = np.asarray(pc.is_in(entries.column(f.FILE_PATH).filter(pa.array(mask)), value_set=wanted))
            for path in entries.column(f.FILE_PATH).filter(pa.array(mask)).to_pylist():
                found[path] = by_id[entries.manifest.added_snapshot_id]
        return found

    def no_removed_files(self, removed: Mapping[str, Snapshot], remedy: str = "") -> None:
        """Refuse removed files in which rows are to be deleted; see ``removed_files``."""
        self._refuse_removed(removed, "data files in which rows are deleted were removed", remedy)

    def no_other_vectors(self, vectors: Mapping[str, DataFile], removed: Mapping[int, Mask]) -> None:
        """Refuse a data file that gets a deletion vector and keeps another one.

        ``vectors`` are the new vectors by data file; ``removed`` are masks of removed entries, by position of a
        manifest.
        """
        partitions = PartitionSet(self._head, vectors.values())
        named = pa.array(vectors, pa.string())
        chosen = partitions.manifests(ManifestContent.DELETES) if vectors else []
        for (position, _), entries in zip(chosen, self._head.read([manifest for _, manifest in chosen]), strict=True):
            referenced = pc.is_in(entries.column(f.REFERENCED_DATA_FILE), value_set=named, skip_nulls=True)
            is_vector = pc.equal(pc.utf8_lower(entries.column(f.FILE_FORMAT)), "puffin")
            mask = np.asarray(referenced) & np.asarray(is_vector) & (entries.status() != EntryStatus.DELETED)
            if position in removed:
                mask &= ~removed[position]
            if mask.any():
                raise self._conflict(
                    "data files have deletion vectors already, and may have one each: they were added",
                    "or remove the vectors that are there and add what they delete to the new ones",
                    entries.column(f.REFERENCED_DATA_FILE).filter(pa.array(mask)).to_pylist(),
                    entries.column(f.SNAPSHOT_ID).filter(pa.array(mask))[0].as_py(),
                )

    def no_new_deletes_for(self, files: Mapping[int, Mask], *, equality: bool = True, remedy: str = "") -> None:
        """Refuse added row-level deletes that apply to data files of the head.

        ``files`` are masks by position of their manifest. Without ``equality``, equality deletes are tolerated.
        """
        head, deleting = self._head, _ids(self._others(*_DELETING))
        new: list[ManifestEntries] = []
        added = self._added_manifests(ManifestContent.DELETES) if deleting else []
        for entries in head.read(added, statistics=DELETE_STATISTICS):
            mask = entries_by(entries, deleting) | self._carried(entries)
            mask &= entries.status() != EntryStatus.DELETED
            if not equality:
                mask &= np.asarray(entries.column(f.CONTENT)) != DataFileContent.EQUALITY_DELETES
            new.append(entries.filter(mask))
        index = delete_index(head.metadata, new)
        if not len(index):
            return
        data = [one for one in files if head.manifests[one].content is ManifestContent.DATA]
        for position, entries in zip(data, head.read([head.manifests[one] for one in data]), strict=True):
            chosen = entries.filter(files[position])
            assigned = index.assign(chosen)
            if assigned is not None:
                row = int(np.flatnonzero(assigned.counts())[0])
                path = chosen.column(f.FILE_PATH)[row].as_py()
                deletes = [file.file_path for file in assigned.files(row)]
                by = _added_by(new, deletes[0])
                raise self._conflict(f"row-level deletes of {path} were added", remedy, deletes, by)

    @lazy
    def _later(self) -> list[Snapshot]:
        """The snapshots that came later, newest first.

        Raises ``ValidationFailed`` when the head was not built on the snapshot, or the history in between expired.
        """
        assert self._since is not None
        later: list[Snapshot] = []
        current = self._head.snapshot
        while current is not None:
            if current.snapshot_id == self._since.snapshot_id:
                return later
            later.append(current)
            if current.parent_snapshot_id is None:
                break
            parent = self._head.metadata.snapshot_by_id(current.parent_snapshot_id)
            if parent is None:
                raise self._unknown(f"snapshot {current.parent_snapshot_id} has expired")
            current = parent
        if self._since.snapshot_id is not None:
            raise self._unknown("the branch was rolled back, or its history has expired")
        return later

    def _others(self, *operations: Operation) -> list[Snapshot]:
        """The later snapshots of other transactions with one of some operations."""
        own = () if self._since is None else self._since.own
        return [one for one in self._later if one.operation in operations and one.snapshot_id not in own]

    @lazy
    def _rewriting(self) -> list[Snapshot]:
        return self._others(Operation.REPLACE)

    def _carried(self, entries: ManifestEntries) -> Mask:
        """A mask of files of deletes that were added meanwhile and then rewritten; their original files are gone.

        A rewrite keeps the sequence number of the newest deletes that it rewrites, which shows whether these are new.
        """
        if not self._rewriting or self._since is None:
            return np.zeros(len(entries), bool)
        id_ = self._since.snapshot_id
        base = None if id_ is None else self._head.metadata.snapshot_by_id(id_)
        number = 0 if base is None else base.sequence_number
        newer = pc.fill_null(pc.greater(entries.column(f.SEQUENCE_NUMBER), number), True)
        mask: Mask = entries_by(entries, _ids(self._rewriting)) & np.asarray(newer)
        return mask

    def _refuse_added(
        self,
        concern: ConflictFilter,
        content: ManifestContent,
        operations: tuple[Operation, ...],
        what: str,
        remedy: str,
    ) -> None:
        adding = _ids(self._others(*operations))
        for entries in concern.read(self._added_manifests(content) if adding else []):
            mask = entries_by(entries, adding)
            if content is ManifestContent.DELETES:
                mask |= self._carried(entries)
            self._refuse_any(concern, entries, mask & (entries.status() != EntryStatus.DELETED), what, remedy)

    def _refuse_added_and_rewritten(self, concern: ConflictFilter, what: str, remedy: str) -> None:
        """Refuse files that were added meanwhile and then rewritten: the head's manifests do not name them any more.

        The files that a rewrite adds may also hold older rows, so its removed files are judged.
        """
        adding = self._others(*_ADDING)
        if not self._rewriting or not adding:
            return
        removed = self._head.read(self._own_manifests(self._rewriting))
        gone = [entries.column(f.FILE_PATH).filter(pa.array(_removed_here(entries))) for entries in removed]
        rewritten = pa.concat_arrays([pa.array([], pa.string()), *gone])
        if not len(rewritten):
            return
        added = _ids(adding)
        for entries in concern.read(self._own_manifests(adding)):
            mask = entries_by(entries, added) & (entries.status() == EntryStatus.ADDED)
            mask &= np.asarray(pc.is_in(entries.column(f.FILE_PATH), value_set=rewritten))
            self._refuse_any(concern, entries, mask, what, remedy)

    def _added_manifests(self, content: ManifestContent) -> list[ManifestFile]:
        """The manifests of the head that were written since: files added since are live in them, or gone again.

        Manifests of rewrites are included, since they may hold entries that an append in between had added.
        """
        ids = _ids(self._later)
        return [manifest for _, manifest in self._head.live(content) if manifest.added_snapshot_id in ids]

    def _own_manifests(
        self, snapshots: Sequence[Snapshot], content: ManifestContent = ManifestContent.DATA
    ) -> list[ManifestFile]:
        """The manifests that snapshots wrote: only these list the files that a snapshot removed."""
        return [
            manifest
            for snapshot, listed in manifest_lists(self._head.metadata, self._head.io, snapshots)
            for manifest in listed.manifests
            if manifest.added_snapshot_id == snapshot.snapshot_id and manifest.content is content
        ]

    def _refuse_any(
        self, concern: ConflictFilter, entries: ManifestEntries, mask: Mask, what: str, remedy: str
    ) -> None:
        """Refuse the chosen entries that the change is concerned with."""
        if not mask.any():
            return
        chosen = pa.array(mask & concern.may_match(entries))
        paths = entries.column(f.FILE_PATH).filter(chosen).to_pylist()
        if paths:
            raise self._conflict(what, remedy, paths, entries.column(f.SNAPSHOT_ID).filter(chosen)[0].as_py())

    def _refuse_removed(self, removed: Mapping[str, Snapshot], what: str, remedy: str = "") -> None:
        if removed:
            first = next(iter(removed.values()))
            paths = [path for path, snapshot in removed.items() if snapshot is first]
            raise self._conflict(what, remedy, paths, first.snapshot_id)

    def _conflict(self, what: str, remedy: str, paths: list[str], snapshot_id: int | None) -> ValidationFailed:
        snapshot = None if snapshot_id is None else self._head.metadata.snapshot_by_id(snapshot_id)
        by = "" if snapshot is None else f" by snapshot {snapshot_id} ({snapshot.operation})"
        since = "" if self._since is None else f", since snapshot {self._since.snapshot_id}, where this change applies"
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        return ValidationFailed(
            f"{what} meanwhile{by}{since}: {', '.join(paths[:3])}{more}; load the table again and repeat the "
            f"change{f', {remedy}' if remedy else ''}",
            snapshot_id=snapshot_id,
            operation=None if snapshot is None else snapshot.operation.value,
            files=tuple(paths[:100]),
        )

    def _unknown(self, why: str) -> ValidationFailed:
        assert self._since is not None
        return ValidationFailed(
            f"cannot know what was committed since snapshot {self._since.snapshot_id}: {why}; load the table again",
            snapshot_id=self._since.snapshot_id,
        )


def _added_by(entries: Iterable[ManifestEntries], path: str) -> int | None:
    """The snapshot that added a file."""
    for part in entries:
        ids = part.column(f.SNAPSHOT_ID).filter(pc.equal(part.column(f.FILE_PATH), path))
        if len(ids):
            return int(ids[0].as_py())
    return None


def _removed_here(entries: ManifestEntries) -> Mask:
    removed: Mask = entries_by(entries, {entries.manifest.added_snapshot_id}) & (
        entries.status() == EntryStatus.DELETED
    )
    return removed


def _ids(snapshots: Iterable[Snapshot]) -> set[int]:
    return {snapshot.snapshot_id for snapshot in snapshots}

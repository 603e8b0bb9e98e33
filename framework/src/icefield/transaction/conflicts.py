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
import pyarrow.compute as pc

from icefield.errors import InvalidArgument, ValidationFailed
from icefield.manifest import DataFile, DataFileContent, EntryStatus, ManifestContent, ManifestEntries, ManifestFile
from icefield.manifest import schemas as f
from icefield.metadata.snapshots import Operation, Snapshot
from icefield.scan.changed_manifests import entries_by, manifest_lists
from icefield.scan.delete_index import DeleteIndex
from icefield.scan.delete_targets import DELETE_STATISTICS
from icefield.transaction.branch_head import Head
from icefield.transaction.matching import Mask, NamedFiles, PartitionSet


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

    def snapshots(self, head: Head) -> list[Snapshot]:
        """The snapshots that came later, newest first.

        Raises ``ValidationFailed`` when the head was not built on the snapshot, or the history in between expired.
        """
        later: list[Snapshot] = []
        current = head.snapshot
        while current is not None:
            if current.snapshot_id == self.snapshot_id:
                return later
            later.append(current)
            if current.parent_snapshot_id is None:
                break
            parent = head.metadata.snapshot_by_id(current.parent_snapshot_id)
            if parent is None:
                raise self._unknown(f"snapshot {current.parent_snapshot_id} has expired")
            current = parent
        if self.snapshot_id is not None:
            raise self._unknown("the branch was rolled back, or its history has expired")
        return later

    def others(self, head: Head, operations: tuple[Operation, ...]) -> list[Snapshot]:
        """The later snapshots of other transactions with one of some operations."""
        later = self.snapshots(head)
        return [one for one in later if one.operation in operations and one.snapshot_id not in self.own]

    def _unknown(self, why: str) -> ValidationFailed:
        return ValidationFailed(
            f"cannot know what was committed since snapshot {self.snapshot_id}: {why}; load the table again",
            snapshot_id=self.snapshot_id,
        )


class ConflictFilter(Protocol):
    """The files that a change concerns: files that a filter may match, or files of some partitions."""

    def read(self, manifests: Sequence[ManifestFile]) -> Iterator[ManifestEntries]:
        """The entries of manifests, in their order and read ahead, with the columns needed to judge them."""

    def may_match(self, entries: ManifestEntries) -> Mask:
        """A mask of the entries that the change concerns."""


@dataclass(frozen=True, slots=True)
class ConflictMessage:
    """A conflict that a change does not tolerate, and a remedy for it."""

    what: str
    remedy: str = ""


_ADDING: Final = (Operation.APPEND, Operation.OVERWRITE)
_REMOVING: Final = (Operation.OVERWRITE, Operation.DELETE)
_DELETING: Final = (Operation.APPEND, Operation.OVERWRITE, Operation.DELETE)


def no_new_data(head: Head, since: ConflictRange, concern: ConflictFilter, remedy: str = "") -> None:
    """Raise ``ValidationFailed`` when files that the change is concerned with were added meanwhile.

    ``remedy`` ends the message: the option with which the change would be made all the same.
    """
    refusal = ConflictMessage("data was added", remedy)
    _refuse_added(head, since, concern, ManifestContent.DATA, _ADDING, refusal)
    _refuse_added_and_rewritten(head, since, concern, refusal)


def no_new_deletes(head: Head, since: ConflictRange, concern: ConflictFilter, remedy: str = "") -> None:
    """Raise ``ValidationFailed`` when row-level deletes that the change is concerned with were added meanwhile."""
    refusal = ConflictMessage("row-level deletes were added", remedy)
    _refuse_added(head, since, concern, ManifestContent.DELETES, _DELETING, refusal)


def no_removed_data(head: Head, since: ConflictRange, concern: ConflictFilter, remedy: str = "") -> None:
    """Raise ``ValidationFailed`` when files that the change is concerned with were removed meanwhile."""
    removing = since.others(head, _REMOVING)
    for entries in concern.read(_own_manifests(head, removing)):
        mask = _removed_here(entries)
        if mask.any():
            chosen = mask & concern.may_match(entries)
            _refuse_any(head, since, entries, chosen, ConflictMessage("data was removed", remedy))


def require_all(
    head: Head, since: ConflictRange | None, named: NamedFiles, found: Mapping[int, Mask], what: str
) -> None:
    """Raise ``ValidationFailed`` where files that a change removes are not live any more.

    If the snapshot that was read is known, the error names the later snapshot that removed them.
    """
    try:
        named.require_all(head, found, f"cannot remove {what}")
    except ValidationFailed as error:
        if since is None:
            raise
        missing: Collection[str] = error.data["files"]
        for content in ManifestContent:
            refusal = ConflictMessage(f"{what} that this change removes were removed")
            _refuse_removed(head, since, removed_files(head, since, missing, content), refusal)
        raise


def removed_files(
    head: Head, since: ConflictRange, paths: Collection[str], content: ManifestContent = ManifestContent.DATA
) -> dict[str, Snapshot]:
    """The files that were removed meanwhile, rewritten ones included, each with the snapshot that removed it."""
    if not paths:
        return {}
    removing = [snapshot for snapshot in since.snapshots(head) if snapshot.operation is not Operation.APPEND]
    by_id = {snapshot.snapshot_id: snapshot for snapshot in removing}
    wanted, found = pa.array([*paths], pa.string()), dict[str, Snapshot]()
    for entries in head.read(_own_manifests(head, removing, content)):
        mask = _removed_here(entries)
        mask[mask] = np.asarray(pc.is_in(entries.column(f.FILE_PATH).filter(pa.array(mask)), value_set=wanted))
        for path in entries.column(f.FILE_PATH).filter(pa.array(mask)).to_pylist():
            found[path] = by_id[entries.manifest.added_snapshot_id]
    return found


def no_removed_files(head: Head, since: ConflictRange, removed: Mapping[str, Snapshot], remedy: str = "") -> None:
    """Raise ``ValidationFailed`` when files in which rows are to be deleted were removed; see ``removed_files``."""
    _refuse_removed(head, since, removed, ConflictMessage("data files in which rows are deleted were removed", remedy))


def _refuse_removed(
    head: Head, since: ConflictRange, removed: Mapping[str, Snapshot], refusal: ConflictMessage
) -> None:
    if removed:
        first = next(iter(removed.values()))
        paths = [path for path, snapshot in removed.items() if snapshot is first]
        raise _conflict(head, since, refusal, paths, first.snapshot_id)


def no_other_vectors(
    head: Head, since: ConflictRange | None, vectors: Mapping[str, DataFile], removed: Mapping[int, Mask]
) -> None:
    """Raise ``ValidationFailed`` when a data file that gets a deletion vector keeps another one.

    ``vectors`` are the new vectors by data file; ``removed`` are masks of removed entries, by position of a manifest.
    """
    partitions = PartitionSet(head)
    for vector in vectors.values():
        partitions.add(vector.spec_id, vector.partition)
    named = pa.array(vectors, pa.string())
    chosen = partitions.manifests(ManifestContent.DELETES) if vectors else []
    for (position, _), entries in zip(chosen, head.read([manifest for _, manifest in chosen]), strict=True):
        referenced = pc.is_in(entries.column(f.REFERENCED_DATA_FILE), value_set=named, skip_nulls=True)
        is_vector = pc.equal(pc.utf8_lower(entries.column(f.FILE_FORMAT)), "puffin")
        mask = np.asarray(referenced) & np.asarray(is_vector) & (entries.status() != EntryStatus.DELETED)
        if position in removed:
            mask &= ~removed[position]
        if mask.any():
            paths = entries.column(f.REFERENCED_DATA_FILE).filter(pa.array(mask)).to_pylist()
            snapshot_id = entries.column(f.SNAPSHOT_ID).filter(pa.array(mask))[0].as_py()
            refusal = ConflictMessage(
                "data files have deletion vectors already, and may have one each: they were added",
                "or remove the vectors that are there and add what they delete to the new ones",
            )
            raise _conflict(head, since, refusal, paths, snapshot_id)


def no_new_deletes_for(
    head: Head, since: ConflictRange, files: Mapping[int, Mask], *, equality: bool = True, remedy: str = ""
) -> None:
    """Raise ``ValidationFailed`` when row-level deletes that apply to data files of the head were added meanwhile.

    ``files`` are masks by position of their manifest. Without ``equality``, equality deletes are tolerated.
    """
    later = since.snapshots(head)
    deleting = _ids(since.others(head, _DELETING))
    new: list[ManifestEntries] = []
    added = _added_manifests(head, later, ManifestContent.DELETES) if deleting else []
    carried = _CarriedDeletes(head, since)
    for entries in head.read(added, statistics=DELETE_STATISTICS):
        mask = entries_by(entries, deleting) | carried.among(entries)
        mask &= entries.status() != EntryStatus.DELETED
        if not equality:
            mask &= np.asarray(entries.column(f.CONTENT)) != DataFileContent.EQUALITY_DELETES
        new.append(entries.filter(mask))
    index = delete_index(head, new)
    if not len(index):
        return
    data = [one for one in files if head.manifests[one].content is ManifestContent.DATA]
    for position, entries in zip(data, head.read([head.manifests[one] for one in data]), strict=True):
        chosen = entries.filter(files[position])
        assigned = index.assign(chosen)
        if assigned is not None:
            row = int(np.flatnonzero(assigned.counts())[0])
            path = chosen.column(f.FILE_PATH)[row].as_py()
            refusal = ConflictMessage(f"row-level deletes of {path} were added", remedy)
            deletes = [file.file_path for file in assigned.files(row)]
            raise _conflict(head, since, refusal, deletes, _added_by(new, deletes[0]))


class _CarriedDeletes:
    """Deletes that were added meanwhile and then rewritten with others, so that their delete files are gone.

    A rewrite keeps the sequence number of the newest deletes that it rewrites, which shows whether these are new.
    """

    def __init__(self, head: Head, since: ConflictRange) -> None:
        self._rewrites = _ids(since.others(head, (Operation.REPLACE,)))
        base = None if since.snapshot_id is None else head.metadata.snapshot_by_id(since.snapshot_id)
        self._number = 0 if base is None else base.sequence_number

    def among(self, entries: ManifestEntries) -> Mask:
        """A mask of the entries that hold such deletes."""
        if not self._rewrites:
            return np.zeros(len(entries), bool)
        newer = pc.fill_null(pc.greater(entries.column(f.SEQUENCE_NUMBER), self._number), True)
        mask: Mask = entries_by(entries, self._rewrites) & np.asarray(newer)
        return mask


def _added_by(entries: Iterable[ManifestEntries], path: str) -> int | None:
    """The snapshot that added a file."""
    for part in entries:
        ids = part.column(f.SNAPSHOT_ID).filter(pc.equal(part.column(f.FILE_PATH), path))
        if len(ids):
            return int(ids[0].as_py())
    return None


def delete_index(head: Head, entries: list[ManifestEntries]) -> DeleteIndex:
    """An index of delete files of a head."""
    unpartitioned = [spec.spec_id for spec in head.metadata.partition_specs if spec.is_unpartitioned]
    return DeleteIndex([part for part in entries if len(part)], unpartitioned)


def _refuse_added(
    head: Head,
    since: ConflictRange,
    concern: ConflictFilter,
    content: ManifestContent,
    operations: tuple[Operation, ...],
    refusal: ConflictMessage,
) -> None:
    later = since.snapshots(head)
    adding = _ids(since.others(head, operations))
    carried = _CarriedDeletes(head, since)
    for entries in concern.read(_added_manifests(head, later, content) if adding else []):
        mask = entries_by(entries, adding)
        if content is ManifestContent.DELETES:
            mask |= carried.among(entries)
        mask &= entries.status() != EntryStatus.DELETED
        if mask.any():
            _refuse_any(head, since, entries, mask & concern.may_match(entries), refusal)


def _refuse_added_and_rewritten(
    head: Head, since: ConflictRange, concern: ConflictFilter, refusal: ConflictMessage
) -> None:
    """Refuse files that were added meanwhile and then rewritten: the manifests of the head do not name them any more.

    The files that a rewrite adds may also hold older rows, so its removed files are judged.
    """
    rewriting, adding = since.others(head, (Operation.REPLACE,)), since.others(head, _ADDING)
    if not rewriting or not adding:
        return
    removed = head.read(_own_manifests(head, rewriting))
    gone = [entries.column(f.FILE_PATH).filter(pa.array(_removed_here(entries))) for entries in removed]
    rewritten = pa.concat_arrays([pa.array([], pa.string()), *gone])
    if not len(rewritten):
        return
    added = _ids(adding)
    for entries in concern.read(_own_manifests(head, adding)):
        mask = entries_by(entries, added) & (entries.status() == EntryStatus.ADDED)
        mask &= np.asarray(pc.is_in(entries.column(f.FILE_PATH), value_set=rewritten))
        if mask.any():
            _refuse_any(head, since, entries, mask & concern.may_match(entries), refusal)


def _added_manifests(head: Head, later: list[Snapshot], content: ManifestContent) -> list[ManifestFile]:
    """The manifests of the head that were written since: files added since are live in them, or gone again.

    Manifests of rewrites are included, since they may hold entries that an append in between had added.
    """
    ids = {snapshot.snapshot_id for snapshot in later}
    return [manifest for _, manifest in head.live(content) if manifest.added_snapshot_id in ids]


def _own_manifests(
    head: Head, snapshots: Sequence[Snapshot], content: ManifestContent = ManifestContent.DATA
) -> list[ManifestFile]:
    """The manifests that snapshots wrote: only these list the files that a snapshot removed."""
    return [
        manifest
        for snapshot, listed in manifest_lists(head.metadata, head.io, snapshots)
        for manifest in listed.manifests
        if manifest.added_snapshot_id == snapshot.snapshot_id and manifest.content is content
    ]


def _removed_here(entries: ManifestEntries) -> Mask:
    removed: Mask = entries_by(entries, {entries.manifest.added_snapshot_id}) & (
        entries.status() == EntryStatus.DELETED
    )
    return removed


def _ids(snapshots: Iterable[Snapshot]) -> set[int]:
    return {snapshot.snapshot_id for snapshot in snapshots}


def _refuse_any(
    head: Head, since: ConflictRange, entries: ManifestEntries, mask: Mask, refusal: ConflictMessage
) -> None:
    if mask.any():
        paths = entries.column(f.FILE_PATH).filter(pa.array(mask)).to_pylist()
        snapshot_id = entries.column(f.SNAPSHOT_ID).filter(pa.array(mask))[0].as_py()
        raise _conflict(head, since, refusal, paths, snapshot_id)


def _conflict(
    head: Head, since: ConflictRange | None, refusal: ConflictMessage, paths: list[str], snapshot_id: int | None = None
) -> ValidationFailed:
    snapshot = None if snapshot_id is None else head.metadata.snapshot_by_id(snapshot_id)
    by = "" if snapshot is None else f" by snapshot {snapshot_id} ({snapshot.operation})"
    after = "" if since is None else f", since snapshot {since.snapshot_id}, where this change applies"
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    remedy = f", {refusal.remedy}" if refusal.remedy else ""
    return ValidationFailed(
        f"{refusal.what} meanwhile{by}{after}: {', '.join(paths[:3])}{more}; load the table again and repeat the "
        f"change{remedy}",
        snapshot_id=snapshot_id,
        operation=None if snapshot is None else snapshot.operation.value,
        files=tuple(paths[:100]),
    )

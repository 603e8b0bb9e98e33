"""Expiring snapshots: the commit, and then the files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from icefield.abc import OperationProgress
from icefield.engine import CONTENT_KINDS, FileKind
from icefield.errors import IcefieldError
from icefield.metadata import TableMetadata, apply_updates, with_metadata_log
from icefield.storage import FileIO, TableFiles, delete_files, refuse_twins
from icefield.transaction import TableAccess

from icefield_maintenance.expiry.action import ExpireSnapshots, changes_of
from icefield_maintenance.expiry.interrupted import left_behind
from icefield_maintenance.expiry.result import ExpireSnapshotsResult, result_of
from icefield_maintenance.expiry.retention import Retention
from icefield_maintenance.expiry.unreachable import Gone, Unreachable, unreachable
from icefield_maintenance.stored_version import with_what_is_stored

_STAGES: Final[Sequence[Sequence[FileKind]]] = (
    CONTENT_KINDS,
    (FileKind.STATISTICS, FileKind.PARTITION_STATISTICS, FileKind.METADATA),
    (FileKind.MANIFEST,),
    (FileKind.MANIFEST_LIST,),
)
"""The stages of deletion, each complete before the next: a manifest list leads the next run to all remaining files.

The last list is deleted after all other lists, even if a store deletes many files at once: the next run needs it.
"""


def expire(target: TableAccess, asked: Retention, *, dry_run: bool, clean_files: bool) -> ExpireSnapshotsResult:
    """Expire snapshots, then delete what only they referred to; see ``MaintenanceTable.expire_snapshots``."""
    if clean_files:
        refuse_twins(target.io, target.strategy, target.metadata, target.metadata_location, "expiry")
    if dry_run:
        return _foreseen(target, asked, clean_files)
    with target.begin() as tx:
        action = ExpireSnapshots(tx.stage, asked)
        action.commit()
        after = tx.commit_transaction()
        table = tx.context.name
    before = target.metadata if action.base is None else action.base
    if not clean_files:
        return result_of(before, action.expired)

    def unreachable_in(metadata: TableMetadata, location: str | None) -> Unreachable:
        kept = with_what_is_stored(after.io, metadata, location)
        return _found(after.io, before, kept, location, target)

    try:
        found = target.reading(after.metadata, after.metadata_location, unreachable_in)
    except IcefieldError as error:
        error.add_note("The snapshots have expired, and no file was deleted: expire again when this can be read.")
        raise
    return result_of(before, action.expired, found, undeleted=_delete(after.io, table, found))


def _foreseen(target: TableAccess, asked: Retention, clean_files: bool) -> ExpireSnapshotsResult:
    """The plan for the current version."""
    io = target.io
    expired, changes = changes_of(target.metadata, asked, io)
    before = with_what_is_stored(io, target.metadata, target.metadata_location)
    after = apply_updates(before, changes.updates)
    if after is not before and target.metadata_location is not None:
        after = with_metadata_log(after, target.metadata_location, before.last_updated_ms)
    found = _found(io, before, after, target.metadata_location, target) if clean_files else None
    return result_of(before, expired, found, dry_run=True)


def _found(
    io: FileIO, before: TableMetadata, after: TableMetadata, location: str | None, target: TableAccess
) -> Unreachable:
    gone = left_behind(io, after, before.snapshots)
    gone.add(Gone.between(before, after))
    found = unreachable(io, after, gone, location, target.runner)
    if found:
        found.keep_others(TableFiles(io, before, target.strategy))
    return found


def _delete(io: FileIO, table: tuple[str, ...], found: Unreachable) -> int:
    """Delete the files, stage by stage, and return the number of remaining files.

    If a file cannot be deleted, it ends after the current stage.
    """
    counts = found.counts()
    total = int(counts.sum())
    done = 0
    for stage in _STAGES:
        expected = int(counts[list(stage)].sum())

        def notify(number: int, before: int = done, step: str = stage[0].label) -> None:
            io.listeners.tell(OperationProgress(table, "expire-snapshots", step, before + number, total))

        locations = _locations(found, stage)
        if stage is _STAGES[-1] and expected > 1:
            failed = _delete_last_one_last(io, [*locations], notify)
        else:
            failed = delete_files(io, locations, notify)
        done += expected
        if failed:
            return failed + total - done
    return 0


def _delete_last_one_last(io: FileIO, locations: Sequence[str], notify: Callable[[int], None]) -> int:
    """Delete files, the last one after all others, and return the number of remaining files."""
    *others, last = locations

    def of_others(number: int) -> None:
        if number < len(others):
            notify(number)

    failed = delete_files(io, others, of_others)
    return failed + 1 if failed else delete_files(io, [last], lambda _: notify(len(locations)))


def _locations(found: Unreachable, stage: Sequence[FileKind]) -> Iterator[str]:
    batches = found.content.left() if stage is CONTENT_KINDS else found.naming.left()
    for locations, kinds in batches:
        rows = np.flatnonzero(np.isin(kinds, stage))
        yield from locations.take(pa.array(rows)).to_pylist()

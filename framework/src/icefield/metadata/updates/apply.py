"""Applying a list of updates: one change, checked as a whole."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from icefield.metadata.entries import SnapshotLogEntry
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import Change, TableUpdate
from icefield.metadata.validation import check_defaults_fit, check_names_differ


def apply_updates(
    metadata: TableMetadata, updates: Iterable[TableUpdate], *, now_ms: int | None = None
) -> TableMetadata:
    """The metadata after a change, or the very same object when the updates change nothing.

    ``now_ms`` is the time of the change in ms; a change that adds a snapshot is of the snapshot's time instead. The
    time never runs backwards. Where the current snapshot is another one than before, the snapshot log says so, once.
    Costs no more than what is added, whatever the metadata holds. Raises ``InvalidArgument``, ``InvalidSchema`` or
    ``UnsupportedFeature``.
    """
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    change = Change(base=metadata, timestamp_ms=metadata.next_timestamp_ms(now))
    result = metadata
    for update in updates:
        result = update.apply(result, change)
    if result is metadata:
        return metadata
    check_defaults_fit(metadata, result)
    check_names_differ(result, metadata)
    return _logged(result, change)


def _logged(result: TableMetadata, change: Change) -> TableMetadata:
    log, current = result.snapshot_log, result.current_snapshot_id
    if current is not None and current != change.base.current_snapshot_id:
        log = log.extended([SnapshotLogEntry(change.timestamp_ms, current)])
    return replace(result, snapshot_log=log, last_updated_ms=change.timestamp_ms)

"""Applying updates: one change, checked as a whole."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from icefield.metadata.codecs import SNAPSHOT_LOG
from icefield.metadata.entries import SnapshotLogEntry
from icefield.metadata.json_array import JsonArray
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import TableDrafts, TableUpdate
from icefield.metadata.validation import check_defaults_fit, check_names_differ


class MetadataBuilder:
    """A change of a base by updates in one or several steps; each update is applied once.

    ``now_ms`` is the time of the change in ms; a change that adds a snapshot has the snapshot's time instead. The time
    never runs backwards. If the current snapshot changes, the snapshot log gets a single entry, however many steps
    there are.
    """

    def __init__(self, base: TableMetadata, *, now_ms: int | None = None) -> None:
        now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        self._change = TableDrafts(base=base, timestamp_ms=base.next_timestamp_ms(now))
        self._result = base

    def apply(self, updates: Iterable[TableUpdate]) -> TableMetadata:
        """The metadata after all updates so far; the base object itself if they change nothing.

        The cost depends on the number of additions, not on the size of the metadata. Raises ``InvalidArgument``,
        ``InvalidSchema`` or ``UnsupportedFeature``.
        """
        before = self._result
        result = before
        for update in updates:
            result = update.apply(result, self._change)
        self._result = self._change.settled(result)
        base = self._change.base
        if self._result is base:
            return base
        if self._result is not before:
            check_defaults_fit(base, self._result)
            check_names_differ(self._result, base)
        return _logged(self._result, self._change)


def apply_updates(
    metadata: TableMetadata, updates: Iterable[TableUpdate], *, now_ms: int | None = None
) -> TableMetadata:
    """The metadata after a change in a single step: see ``MetadataBuilder``."""
    return MetadataBuilder(metadata, now_ms=now_ms).apply(updates)


def _logged(result: TableMetadata, change: TableDrafts) -> TableMetadata:
    log, current = result.snapshot_log, result.current_snapshot_id
    if current is not None and current != change.base.current_snapshot_id:
        log = log.extended([SnapshotLogEntry(change.timestamp_ms, current)])
    elif current is None and change.base.current_snapshot_id is not None:
        log = JsonArray(SNAPSHOT_LOG)  # its last entry would say that the former snapshot is still the current one
    return replace(result, snapshot_log=log, last_updated_ms=change.timestamp_ms)

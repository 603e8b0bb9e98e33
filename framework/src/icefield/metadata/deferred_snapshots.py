"""Partially loaded snapshots: a service sends some, and the rest are fetched on first use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from icefield.base.concurrency import reset_after_fork
from icefield.errors import StorageError
from icefield.metadata.codecs import SNAPSHOTS
from icefield.metadata.json_array import JsonArray
from icefield.metadata.snapshots import Snapshot
from icefield.metadata.table_metadata import TableMetadata


def with_deferred_snapshots(some: TableMetadata, fetch: Callable[[], TableMetadata]) -> TableMetadata:
    """Metadata that holds some snapshots of a version, and gets the others from ``fetch`` on first use.

    ``fetch`` returns the whole metadata of that version or of a later one: snapshots that were added since are left
    out, by their sequence numbers. So a table of format version 1, which has no sequence numbers, cannot be loaded in
    this way. Finding a loaded snapshot fetches nothing; the first other access to the snapshots fetches them once.
    """
    assert some.format_version > 1, "snapshots of version 1 have no sequence numbers"

    def whole() -> JsonArray[Snapshot]:
        return _as_of(some, fetch())

    return replace(some, snapshots=_DeferredSnapshots(some.snapshots, whole))


def _as_of(some: TableMetadata, whole: TableMetadata) -> JsonArray[Snapshot]:
    """The snapshots of a version, selected from a later one.

    A snapshot that was removed in between is missing, unless ``some`` holds it.
    """
    if whole.table_uuid != some.table_uuid or whole.last_sequence_number < some.last_sequence_number:
        raise StorageError(
            f"table {some.location} was replaced by another while its snapshots were read: load it again",
            location=some.location,
        )
    last, found = some.last_sequence_number, whole.snapshots
    kept = found.kept([i for i, record in enumerate(found.records) if (record.sequence_number or 0) <= last])
    return kept.extended(each for each in some.snapshots if each.snapshot_id not in kept.positions)


class _DeferredSnapshots(JsonArray[Snapshot]):
    """All snapshots of a version, only some of them loaded.

    Finding a loaded snapshot fetches nothing. Every other access to elements fetches the whole array first.
    """

    __slots__ = ("__weakref__", "_fetch", "_lock", "_some")

    def __init__(self, some: JsonArray[Snapshot], fetch: Callable[[], JsonArray[Snapshot]]) -> None:
        super().__init__(SNAPSHOTS)
        self._some = some
        self._fetch: Callable[[], JsonArray[Snapshot]] | None = fetch
        self._unlock()
        reset_after_fork(self._unlock)

    def _unlock(self) -> None:
        self._lock = threading.Lock()

    def find(self, identity: Any) -> Snapshot | None:
        if self._fetch is not None and (found := self._some.find(identity)) is not None:
            return found
        return super().find(identity)

    def loaded(self, identity: Any) -> Snapshot | None:
        return self._some.find(identity) if self._fetch is not None else super().find(identity)

    def known_records(self) -> Sequence[Any]:
        return self._some.records if self._fetch is not None else super().known_records()

    def known_size(self) -> int:
        return len(self._some) if self._fetch is not None else super().known_size()

    def __repr__(self) -> str:
        return "<some snapshots>" if self._fetch is not None else super().__repr__()

    def _complete(self) -> None:
        with self._lock:
            if self._fetch is not None:
                whole = self._fetch()
                self._base, self._location = whole.raw(), whole._location
                self._fetch = None

"""Manifests read by threads, a few ahead of the consumer, and handed out in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from icefield.manifest import ManifestEntries, ManifestFile, ManifestReader, ManifestRequest
from icefield.types import StructType

GROUP_ROWS: Final = 65_536
"""Entries that are handed out together, where so many are at hand."""


def manifest_groups(
    reader: ManifestReader,
    manifests: Sequence[tuple[ManifestFile, StructType]],
    request: ManifestRequest,
    workers: int,
) -> Iterator[list[ManifestEntries]]:
    """The entries of each manifest, given with its partition type, in order.

    What is cached is taken at once; what is not is read by ``workers`` threads, and at most twice as many manifests
    are in memory before they are drawn. Consecutive manifests of one spec that are at hand come together.
    """
    reads = _Reads(reader, iter(manifests), request, min(workers, len(manifests)))
    try:
        while group := reads.next_group():
            yield group
    finally:
        reads.stop()


class _Reads:
    def __init__(
        self,
        reader: ManifestReader,
        manifests: Iterator[tuple[ManifestFile, StructType]],
        request: ManifestRequest,
        workers: int,
    ) -> None:
        self._reader = reader
        self._manifests = manifests
        self._request = request
        self._workers = workers
        self._pool: ThreadPoolExecutor | None = None
        self._ahead: deque[ManifestEntries | Future[ManifestEntries]] = deque()
        self._submitted = 0
        self._rows_ready = 0

    def next_group(self) -> list[ManifestEntries]:
        """The next manifests, at least one; empty at the end."""
        self._fill()
        group: list[ManifestEntries] = []
        rows = 0
        while self._ahead and (not group or self._joins(group, rows)):
            entries = self._take()
            group.append(entries)
            rows += len(entries)
        return group

    def stop(self) -> None:
        """Drop what is not begun."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _joins(self, group: list[ManifestEntries], rows: int) -> bool:
        head = self._ahead[0]
        if isinstance(head, Future):
            if not head.done() or head.exception() is not None:
                return False
            head = head.result()
        return rows < GROUP_ROWS and head.spec_id == group[0].spec_id

    def _take(self) -> ManifestEntries:
        head = self._ahead.popleft()
        if isinstance(head, Future):
            self._submitted -= 1
            return head.result()
        self._rows_ready -= len(head)
        return head

    def _fill(self) -> None:
        while self._submitted < 2 * self._workers and self._rows_ready < 2 * GROUP_ROWS:
            wanted = next(self._manifests, None)
            if wanted is None:
                return
            manifest, partition_type = wanted
            known = self._reader.cached(manifest, partition_type, self._request)
            if known is not None:
                self._ahead.append(known)
                self._rows_ready += len(known)
            else:
                found = self._submit(manifest, partition_type)
                self._ahead.append(found)
                if not isinstance(found, Future):
                    self._rows_ready += len(found)
                    return

    def _submit(self, manifest: ManifestFile, partition_type: StructType) -> ManifestEntries | Future[ManifestEntries]:
        if self._workers == 1:
            return self._reader.read(manifest, partition_type, self._request)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="icefield-plan")
        self._submitted += 1
        return self._pool.submit(self._reader.read, manifest, partition_type, self._request)

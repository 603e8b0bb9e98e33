"""Reading of manifests: threads fetch a few ahead of the consumer, which decodes them in order.

Threads wait for storage while the consumer decodes. Before the consumer decodes a group of manifests, the threads help
it to inflate the group. The threads never decode or inflate while the consumer decodes: decoding is a long series of
short vector operations, and threads that take the interpreter lock after every block delay each of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from icefield.errors import IcefieldError
from icefield.manifest import FetchedManifest, ManifestEntries, ManifestFile, ManifestReader, ManifestRequest
from icefield.types import StructType

T = TypeVar("T")

GROUP_ROWS: Final = 65_536
"""The maximum number of entries in a group, if so many are already decoded."""

_DECODED_AT_ONCE: Final = 8192
"""The maximum number of entries to decode for a group, if so many are already fetched."""

_DECODED_TOGETHER_BYTES: Final = 8 * 1024 * 1024

_AHEAD_BYTES: Final = 64 * 1024 * 1024

_INFLATED_BYTES: Final = 4 * 1024 * 1024
"""The size up to which manifests are inflated in parallel, in bytes for each manifest."""


def manifest_groups(
    reader: ManifestReader,
    manifests: Sequence[tuple[ManifestFile, StructType]],
    request: ManifestRequest,
    workers: int | None = None,
) -> Iterator[list[ManifestEntries]]:
    """The entries of each manifest, given with its partition type, in order.

    Cached manifests are used at once. All others are fetched by ``workers`` threads (``FileIO.workers``), at most twice
    as many manifests and about 64 MiB ahead. Consecutive manifests of one spec that are already read form one group.
    """
    workers = reader.io.workers(workers, waiting=True)
    reads = _ManifestQueue(reader, iter(manifests), request, min(workers, len(manifests)))
    try:
        while group := reads.next_group():
            yield group
    finally:
        reads.stop()


def in_lots(items: Iterable[T], size_of: Callable[[T], int], most: int | None) -> Iterator[list[T]]:
    """The items in lots that end when their size reaches ``most``; one lot if it is None."""
    lot: list[T] = []
    size = 0
    for item in items:
        lot.append(item)
        size += size_of(item)
        if most is not None and size >= most:
            yield lot
            lot, size = [], 0
    if lot:
        yield lot


@dataclass(slots=True)
class _QueuedManifest:
    """A manifest in the queue: decoded, kept, or being fetched; ``size`` is its share of the bytes ahead."""

    manifest: ManifestFile
    partition_type: StructType
    entries: ManifestEntries | None
    kept: FetchedManifest | None = None
    data: Future[FetchedManifest] | None = None
    size: int = 0
    is_alone: bool = False

    @property
    def is_at_hand(self) -> bool:
        return self.data is None or (self.data.done() and self.data.exception() is None)


class _ManifestQueue:
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
        self._side: ThreadPoolExecutor | None = None
        self._ahead: deque[_QueuedManifest] = deque()
        self._fetching = 0
        self._bytes = 0
        self._rows = 0
        self._error: Exception | None = None
        self._inflaters = min(reader.io.workers(), workers)

    def next_group(self) -> list[ManifestEntries]:
        """The next group of manifests, at least one; empty at the end."""
        if self._error is not None:
            raise self._error
        self._fill()
        group: list[ManifestEntries] = []
        rows = decoded = 0
        while self._ahead and (not group or self._joins(group[0], rows, decoded)):
            was_cached = self._ahead[0].entries is not None
            try:
                taken = self._take()
            except Exception as error:
                if not group:
                    raise
                self._error = error  # raised after the manifests before it are returned
                break
            group += taken
            number = sum(map(len, taken))
            rows += number
            decoded += 0 if was_cached else number
        return group

    def stop(self) -> None:
        """Cancel all reads that have not started."""
        for pool in (self._pool, self._side):
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)

    def _joins(self, first: ManifestEntries, rows: int, decoded: int) -> bool:
        head = self._ahead[0]
        same = head.manifest.partition_spec_id == first.spec_id
        return same and rows < GROUP_ROWS and decoded < _DECODED_AT_ONCE and head.is_at_hand

    def _take(self) -> list[ManifestEntries]:
        head = self._ahead.popleft()
        if head.entries is not None:
            self._rows -= len(head.entries)
            return [head.entries]
        fetched = self._awaited(head)
        alike = self._alike(head)
        if alike:
            try:
                together = [head, *alike]
                wholes = [fetched, *map(self._awaited, alike)]
                self._inflate(together, wholes)
                typed = [(one.manifest, one.partition_type) for one in together]
                entries = self._reader.read_together(typed, self._request, wholes)
            except IcefieldError:
                for one in alike:  # one is damaged: read each alone to return those before it
                    one.is_alone = True
            else:
                for one in alike:
                    self._ahead.popleft()
                    self._note_taken(one)
                self._note_taken(head)
                return entries
        self._note_taken(head)
        return [self._reader.read(head.manifest, head.partition_type, self._request, fetched)]

    def _awaited(self, one: _QueuedManifest) -> FetchedManifest | None:
        """The fetched file, once it has arrived; None if it is fetched later. Raises the errors of fetching."""
        return one.kept if one.data is None else one.data.result()

    def _inflate(self, together: Sequence[_QueuedManifest], wholes: Sequence[FetchedManifest | None]) -> None:
        """Inflate the files in parallel, in this thread and in others."""
        left = deque((one.manifest, whole) for one, whole in zip(together, wholes, strict=True) if whole is not None)

        def inflate() -> None:
            # Reading raises the errors of damaged files. Another thread may empty `left` at any time.
            with suppress(IcefieldError, IndexError):
                while True:
                    self._reader.prepare(*left.popleft(), _INFLATED_BYTES)

        others = min(self._inflaters, len(left)) - 1
        if self._pool is None or others < 1:
            return
        if self._side is None:
            self._side = ThreadPoolExecutor(self._inflaters - 1, thread_name_prefix="icefield-inflate")
        started = [self._side.submit(inflate) for _ in range(others)]
        inflate()
        for each in started:
            each.result()

    def _note_taken(self, one: _QueuedManifest) -> None:
        self._fetching -= one.kept is None
        self._bytes -= one.size

    def _alike(self, head: _QueuedManifest) -> list[_QueuedManifest]:
        """The following manifests that are fetched already and can be decoded together with the first."""
        rows, size = head.manifest.entry_count, head.size
        found: list[_QueuedManifest] = []
        for other in self._ahead:
            rows, size = rows + other.manifest.entry_count, size + other.size
            same = other.manifest.partition_spec_id == head.manifest.partition_spec_id
            together = same and other.entries is None and other.is_at_hand and not (head.is_alone or other.is_alone)
            if not together or rows > _DECODED_AT_ONCE or size > _DECODED_TOGETHER_BYTES:
                break
            found.append(other)
        return found

    def _fill(self) -> None:
        while self._fetching < 2 * self._workers and self._bytes < _AHEAD_BYTES and self._rows < 2 * GROUP_ROWS:
            wanted = next(self._manifests, None)
            if wanted is None:
                return
            manifest, partition_type = wanted
            known = self._reader.cached(manifest, partition_type, self._request)
            if known is not None:
                self._rows += len(known)
                self._ahead.append(_QueuedManifest(manifest, partition_type, known))
                continue
            size = max(0, manifest.manifest_length)
            self._bytes += size
            kept = self._reader.kept(manifest)
            if kept is not None:
                self._ahead.append(_QueuedManifest(manifest, partition_type, None, kept, size=size))
                continue
            self._fetching += 1
            data = None
            if self._workers > 1:  # a single worker fetches a manifest when it is needed
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="icefield-plan")
                data = self._pool.submit(self._reader.fetch, manifest)
            self._ahead.append(_QueuedManifest(manifest, partition_type, None, None, data, size))

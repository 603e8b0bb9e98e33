"""Candidates for deletion: each file once, with its location and kind, until a reference to it is found.

A candidate takes eight bytes for its hash, one byte for its kind, and the bytes of its location. Beyond a bound,
locations are compressed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from icefield.engine import FileKind, Kinds
from icefield.storage import HashedLocations, Hashes, LocationSet, Mask

_PLAIN_BYTES: Final = 32 << 20
"""The bytes of locations that are kept uncompressed; further locations are compressed."""

_CODEC: Final = next((name for name in ("zstd", "lz4") if pa.Codec.is_available(name)), None)

_SCHEMA: Final = pa.schema([("location", pa.string()), ("kind", pa.uint8())])


class DeletionCandidates:
    """A set of candidates: ``add`` files first, then ``protect`` the files in use. The rest is ``left``."""

    def __init__(self, places: HashedLocations) -> None:
        self._places = places
        self._seen = LocationSet()
        self._hashes: list[Hashes] = []
        self._held: list[pa.RecordBatch | pa.Buffer] = []
        self._plain_bytes = 0
        self._sorted: Hashes | None = None
        self._free: Mask = np.zeros(0, np.bool_)
        self._count = 0

    def __len__(self) -> int:
        """Files that are left."""
        return self._count

    def add(self, locations: pa.StringArray, kinds: Kinds) -> None:
        """Add files, each once. Must not be called after ``protect``."""
        hashes = self._places.hashes(locations)
        new = self._seen.add_new(hashes)
        if not len(new):
            return
        self._hashes.append(hashes[new])
        self._count += len(new)
        chosen = pa.array(new)
        self._hold(pa.record_batch([locations.take(chosen), pa.array(kinds[new])], schema=_SCHEMA))

    def add_all(self, locations: Sequence[str], kind: FileKind) -> None:
        """Add files of one kind."""
        if locations:
            self.add(pa.array(locations, pa.string()), np.full(len(locations), kind, np.uint8))

    def protect(self, locations: pa.StringArray) -> None:
        """Remove files that are in use from the candidates."""
        if self._sorted is None:
            self._sorted = self._seen.sorted()
            self._free = np.ones(len(self._sorted), np.bool_)
        if not self._count or not len(locations):
            return
        wanted = self._places.hashes(locations)
        at = np.searchsorted(self._sorted, wanted)
        at[at == len(self._sorted)] = 0
        self._free[at[self._sorted[at] == wanted]] = False
        self._count = int(np.count_nonzero(self._free))

    def left(self) -> Iterator[tuple[pa.StringArray, Kinds]]:
        """The files that are left with their kinds, in batches, in the order in which they were added."""
        for hashes, held in zip(self._hashes, self._held, strict=True):
            rows = np.flatnonzero(self._is_free(hashes))
            if not len(rows):
                continue
            batch = held if isinstance(held, pa.RecordBatch) else _inflated(held)
            chosen = pa.array(rows)
            yield batch.column(0).take(chosen), np.asarray(batch.column(1))[rows]

    def counts(self) -> npt.NDArray[np.int64]:
        """How many files of each kind are left."""
        found = np.zeros(len(FileKind), np.int64)
        for _, kinds in self.left():
            found += np.bincount(kinds, minlength=len(FileKind))
        return found

    def _is_free(self, hashes: Hashes) -> Mask:
        if self._sorted is None:
            return np.ones(len(hashes), np.bool_)
        free: Mask = self._free[np.searchsorted(self._sorted, hashes)]
        return free

    def _hold(self, batch: pa.RecordBatch) -> None:
        self._plain_bytes += batch.nbytes
        if self._plain_bytes <= _PLAIN_BYTES or _CODEC is None:
            self._held.append(batch)
            return
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, _SCHEMA, options=pa.ipc.IpcWriteOptions(compression=_CODEC)) as writer:
            writer.write_batch(batch)
        self._held.append(sink.getvalue())


def _inflated(held: pa.Buffer) -> pa.RecordBatch:
    with pa.ipc.open_stream(held) as reader:
        return reader.read_next_batch()

"""Finds a data file that is listed twice, over all manifests of a plan, by 64-bit hashes of the paths.

Hashing takes whole columns; eight bytes a file are kept. A hash that occurs twice only raises suspicion: the paths
themselves are compared before anything is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.errors import InvalidMetadata
from icefield.manifest import ManifestEntries, ManifestFile
from icefield.manifest import schemas as f

_PRIME: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)
_HASHED_AT_ONCE: Final = 1 << 13
_FIRST_CHECK: Final = 1 << 15

Hashes = npt.NDArray[np.uint64]


def path_hashes(paths: pa.StringArray) -> Hashes:
    """A 64-bit hash of each path; no path may be null."""
    offsets = np.frombuffer(paths.buffers()[1], np.int32)[paths.offset : paths.offset + len(paths) + 1].astype(np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    lengths = ends - starts
    hashes = lengths.astype(np.uint64) * _PRIME
    if not len(paths) or int(lengths.max()) == 0:
        return hashes
    # Eight bytes in front and behind, so that every path can be read in words of eight.
    string = np.zeros(int(ends[-1] - starts[0]) + 16, np.uint8)
    data = np.frombuffer(paths.buffers()[2], np.uint8)
    string[8:-8] = data[int(starts[0]) : int(ends[-1])]
    words = np.lib.stride_tricks.as_strided(string[:8].view("<u8"), shape=(len(string) - 7,), strides=(1,))
    starts, ends = starts - starts[0] + 8, ends - starts[0] + 8
    shortest = int(lengths.min())
    for step in range(0, int(lengths.max()) - 7, 8):
        if step + 8 <= shortest:
            _mix(hashes, words[step:][starts])
            continue
        inside = np.flatnonzero(lengths >= step + 8)
        some = hashes[inside]
        _mix(some, words[step:][starts[inside]])
        hashes[inside] = some
    # The last eight bytes; of a shorter path the bytes before it are shifted out.
    short = np.maximum(8 - lengths, 0).astype(np.uint64) * np.uint64(8)
    last = np.where(lengths > 0, words[ends - 8] >> np.minimum(short, np.uint64(63)), np.uint64(0))
    _mix(hashes, last)
    return hashes


def _mix(hashes: Hashes, words: Hashes) -> None:
    """Take eight bytes each into the hashes; ``words`` is used up."""
    np.bitwise_xor(hashes, words, out=hashes)
    np.multiply(hashes, _PRIME, out=hashes)
    np.right_shift(hashes, _SHIFT, out=words)
    np.bitwise_xor(hashes, words, out=hashes)


class DistinctPaths:
    """The paths of a plan so far. ``paths_of`` reads the paths of a manifest's live files again, for a closer look."""

    def __init__(self, paths_of: Callable[[ManifestFile], list[str]]) -> None:
        self._paths_of = paths_of
        self._manifests: list[ManifestFile] = []
        self._hashes: list[Hashes] = []
        self._pending: list[pa.Array] = []
        self._pending_count = 0
        self._count = 0
        self._next_check = _FIRST_CHECK

    def add(self, entries: ManifestEntries) -> None:
        """Take in the files of one manifest. Raises ``InvalidMetadata`` once a path is known to occur twice."""
        self._manifests.append(entries.manifest)
        self._pending.append(entries.column(f.FILE_PATH))
        self._pending_count += len(entries)
        if self._pending_count >= _HASHED_AT_ONCE:
            self._hash()
        if self._count >= self._next_check:
            # At each doubling, so that all checks together cost about as much as the last.
            self._next_check = 2 * self._count
            self.check()

    def _hash(self) -> None:
        """Hash what is pending, in one go: many short vectors cost several times as much as a long one."""
        if self._pending:
            hashes = path_hashes(pa.concat_arrays(self._pending))
            self._hashes.extend(np.split(hashes, np.cumsum([len(paths) for paths in self._pending])[:-1]))
            self._count += self._pending_count
            self._pending, self._pending_count = [], 0

    def check(self) -> None:
        """Look at all paths so far. Raises ``InvalidMetadata`` when one occurs twice."""
        self._hash()
        if not self._hashes:
            return
        hashes = np.concatenate(self._hashes)
        hashes.sort()
        twice = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
        if len(twice):
            self._look_closer(twice)

    def _look_closer(self, suspects: Hashes) -> None:
        seen: dict[str, str] = {}
        for manifest, hashes in zip(self._manifests, self._hashes, strict=True):
            if not np.isin(hashes, suspects).any():
                continue
            paths = self._paths_of(manifest)
            suspicious = np.isin(path_hashes(pa.array(paths, pa.string())), suspects)
            for row in np.flatnonzero(suspicious).tolist():
                path = paths[row]
                if path in seen:
                    where = manifest.manifest_path
                    both = where if seen[path] == where else f"{seen[path]} and {where}"
                    raise InvalidMetadata(f"data file {path} is listed twice, in {both}", location=where)
                seen[path] = manifest.manifest_path

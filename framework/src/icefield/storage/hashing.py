"""64-bit hashes of paths, over whole columns."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_PRIME: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)

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
    # The last eight bytes; for a shorter path the bytes before it are shifted out.
    short = np.maximum(8 - lengths, 0).astype(np.uint64) * np.uint64(8)
    last = np.where(lengths > 0, words[ends - 8] >> np.minimum(short, np.uint64(63)), np.uint64(0))
    _mix(hashes, last)
    return hashes


def _mix(hashes: Hashes, words: Hashes) -> None:
    """Mix eight bytes into each hash; ``words`` is overwritten."""
    np.bitwise_xor(hashes, words, out=hashes)
    np.multiply(hashes, _PRIME, out=hashes)
    np.right_shift(hashes, _SHIFT, out=words)
    np.bitwise_xor(hashes, words, out=hashes)

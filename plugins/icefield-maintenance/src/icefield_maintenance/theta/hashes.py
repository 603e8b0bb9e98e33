"""The hashes of theta sketches: MurmurHash3 x64 128 over whole columns of bytes, as DataSketches computes it.

A sketch holds the upper half of the hash under the seed 9001, shifted by one bit. Nulls do not count, and the libraries
of DataSketches skip values without bytes (empty strings).
"""

from __future__ import annotations

from typing import Any, Final

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

SEED: Final = 9001

_LONG: Final = 1024
"""The size from which a value is hashed separately: its bytes dominate the time."""

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_ADD1, _ADD2, _FIVE = np.uint64(0x52DCE729), np.uint64(0x38495AB5), np.uint64(5)

Hashes = npt.NDArray[np.uint64]


def theta_hashes(values: pa.BinaryArray) -> Hashes:
    """The hashes of the values that are neither null nor empty, in no certain order."""
    offsets = np.frombuffer(values.buffers()[1] or bytes(4), np.int32)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    starts = offsets[:-1].astype(np.int64)
    lengths = np.diff(offsets).astype(np.int64)
    if values.null_count:
        lengths = np.where(values.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    parts = []
    long = lengths > _LONG
    if long.any():
        places = zip(starts[long].tolist(), lengths[long].tolist(), strict=True)
        made = [mmh3.hash64(data[start : start + length].tobytes(), SEED, signed=False)[0] for start, length in places]
        parts.append(np.array(made, np.uint64))
    short = (lengths > 0) & ~long
    if short.any():
        parts.append(_hashed(data, starts[short], lengths[short]))
    return np.concatenate(parts) >> np.uint64(1) if parts else np.zeros(0, np.uint64)


def _hashed(data: npt.NDArray[np.uint8], starts: Any, lengths: Any) -> Hashes:
    h1 = np.full(len(starts), SEED, np.uint64)
    h2 = h1.copy()
    blocks, rest = lengths >> 4, lengths & 15
    for block in range(int(blocks.max())):
        rows = np.flatnonzero(blocks > block)
        k1, k2 = _words(data, starts[rows] + 16 * block, 16).T
        a, b = h1[rows], h2[rows]
        a = (_rotated(a ^ _mixed1(k1), 27) + b) * _FIVE + _ADD1
        b = (_rotated(b ^ _mixed2(k2), 31) + a) * _FIVE + _ADD2
        h1[rows], h2[rows] = a, b
    for length in np.unique(rest[rest > 0]).tolist():
        rows = np.flatnonzero(rest == length)
        k1, k2 = _words(data, starts[rows] + 16 * blocks[rows], length).T
        h1[rows] ^= _mixed1(k1)
        h2[rows] ^= _mixed2(k2)  # of zero it is zero
    total = lengths.astype(np.uint64)
    h1 ^= total
    h2 ^= total
    h1 += h2
    h2 += h1
    h1, h2 = _finished(h1), _finished(h2)
    return h1 + h2


def _words(data: npt.NDArray[np.uint8], starts: Any, length: int) -> Hashes:
    """For each value two little-endian words of the ``length`` bytes from its start, filled up with zeros."""
    if length in (4, 8) and len(starts) and bool(np.all(np.diff(starts) == length)):
        bytes_ = data[starts[0] : starts[0] + length * len(starts)].reshape(-1, length)
    else:
        bytes_ = data[starts[:, None] + np.arange(length)]
    wide = np.zeros((len(starts), 16), np.uint8)
    wide[:, :length] = bytes_
    words: Hashes = wide.view("<u8").astype(np.uint64, copy=False)
    return words


def _mixed1(k: Hashes) -> Hashes:
    return _rotated(k * _C1, 31) * _C2


def _mixed2(k: Hashes) -> Hashes:
    return _rotated(k * _C2, 33) * _C1


def _rotated(values: Hashes, bits: int) -> Hashes:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _finished(h: Hashes) -> Hashes:
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return h ^ (h >> np.uint64(33))

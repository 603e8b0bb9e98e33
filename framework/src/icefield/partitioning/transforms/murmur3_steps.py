"""The steps of murmur3 x86 32-bit, seed 0, on numpy arrays: one element for each value.

Values are taken chunk by chunk, so that the few working arrays of one chunk stay in the processor's cache; every
step is one numpy operation in place.
"""

from __future__ import annotations

from typing import Any

import mmh3
import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.integer[Any]]

_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_FIVE, _ADDEND = np.uint32(5), np.uint32(0xE6546B64)
_FINAL1, _FINAL2 = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)
_R13, _R15, _R16, _R17, _R19 = (np.uint32(n) for n in (13, 15, 16, 17, 19))
_WORD_BITS = np.uint32(32)

_CHUNK = 65_536
# Byte strings need more working arrays, so a chunk has fewer strings.
_STRINGS = 16_384
# Strings longer than this many blocks, and the few longest of a chunk, go to mmh3 one by one: a step of numpy over
# a handful of strings costs more than the call.
_MOST_BLOCKS = 256
_FEWEST_TOGETHER = 24


def hash_pairs(low: Words, high: Words) -> Words:
    """The hash of each 8-byte little-endian integer given as two words."""
    hashes = np.empty(len(low), np.uint32)
    word, spare = np.empty((2, min(_CHUNK, len(low))), np.uint32)
    for start in range(0, len(low), _CHUNK):
        piece = hashes[start : start + _CHUNK]
        k, t = word[: len(piece)], spare[: len(piece)]
        piece.fill(0)
        for part in (low, high):
            k[:] = part[start : start + _CHUNK]
            _mix(piece, k, t)
        _finish(piece, np.uint32(8), t)
    return hashes


def hash_rows(data: Bytes, width: int, rows: int, *, stride: int | None = None, offset: int = 0) -> Words:
    """The hash of each of ``rows`` byte strings of ``width`` bytes.

    The first string begins at byte ``offset`` of ``data``, and each other string ``stride`` bytes (default: ``width``)
    after the one before.
    """
    step = width if stride is None else stride
    if width > 4 * _MOST_BLOCKS:
        starts = range(offset, offset + rows * step, step)
        return np.array([mmh3.mmh3_32_uintdigest(data[start : start + width].data) for start in starts], np.uint32)
    hashes = np.empty(rows, np.uint32)
    word, spare = np.empty((2, min(_CHUNK, rows)), np.uint32)
    for start in range(0, rows, _CHUNK):
        piece = hashes[start : start + _CHUNK]
        k, t = word[: len(piece)], spare[: len(piece)]
        first = offset + start * step
        piece.fill(0)
        for column in range(0, width - 3, 4):
            k[:] = np.ndarray(len(piece), "<u4", data, first + column, (step,))
            _mix(piece, k, t)
        if width & 3:
            k.fill(0)
            for at in range(width & 3):
                t[:] = np.ndarray(len(piece), np.uint8, data, first + (width & ~3) + at, (step,))
                np.left_shift(t, np.uint32(8 * at), out=t)
                np.bitwise_or(k, t, out=k)
            _scramble(k, t)
            np.bitwise_xor(piece, k, out=piece)
        _finish(piece, np.uint32(width), t)
    return hashes


def hash_ranges(data: Bytes, starts: Offsets, lengths: Offsets) -> Words:
    """The hash of each byte string ``data[starts[i] : starts[i] + lengths[i]]``.

    The ranges must be in ``data`` and, chunk by chunk, near each other.
    """
    hashes = np.empty(len(starts), np.uint32)
    for first in range(0, len(starts), _STRINGS):
        chunk = slice(first, first + _STRINGS)
        _hash_chunk(data, starts[chunk], lengths[chunk], hashes[chunk])
    return hashes


def _hash_chunk(data: Bytes, starts: Offsets, lengths: Offsets, out: Words) -> None:
    blocks = lengths >> 2
    most = int(blocks.max())
    if most == int(blocks.min()) and most <= _MOST_BLOCKS and len(out) >= _FEWEST_TOGETHER:
        _hash_together(data, starts, lengths, [len(out)] * most, out)
        return
    # Longest first: the strings that are still active at any step are then a prefix. Few bits sort by radix.
    rank: Offsets = (most - blocks).astype(np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.int64)
    order = np.argsort(rank, kind="stable")
    active = _active_counts(rank[order], most)
    alone = _number_alone(active)
    if alone:
        single, order = order[:alone], order[alone:]
        out[single] = _hash_singly(data, starts[single], lengths[single])
    if len(order):
        hashes = np.empty(len(order), np.uint32)
        steps = [count - alone for count in active if count > alone]
        _hash_together(data, starts[order], lengths[order], steps, hashes)
        out[order] = hashes


def _active_counts(ranks: Offsets, most: int) -> list[int]:
    """The number of strings that have a block left at each step, up to the limit for hashing together."""
    steps = np.arange(min(most, _MOST_BLOCKS + 1))
    counts: list[int] = np.searchsorted(ranks, (most - steps).astype(ranks.dtype), "left").tolist()
    return counts


def _number_alone(active: list[int]) -> int:
    """How many of the longest are hashed one by one."""
    alone = active[_MOST_BLOCKS] if len(active) > _MOST_BLOCKS else 0
    for count in reversed(active):
        if count - alone >= _FEWEST_TOGETHER:
            break
        alone = max(alone, count)
    return alone


def _hash_singly(data: Bytes, starts: Offsets, lengths: Offsets) -> Words:
    raw = data.data
    ranges = zip(starts.tolist(), lengths.tolist(), strict=True)
    return np.array([mmh3.mmh3_32_uintdigest(raw[at : at + size]) for at, size in ranges], np.uint32)


def _hash_together(data: Bytes, starts: Offsets, lengths: Offsets, active: list[int], hashes: Words) -> None:
    """Hash byte strings that are ordered from the most blocks to the fewest; ``active`` counts them at each step."""
    words, base = _words_over(data, starts, lengths)
    position = starts.astype(np.int64)
    position -= base
    # Strings begin anywhere in a word: each block is put together from two neighbours.
    right = position.astype(np.uint32)
    np.left_shift(right & np.uint32(3), np.uint32(3), out=right)
    left = _WORD_BITS - right
    position >>= 2
    here, after, tail, k, t = np.empty((5, len(starts)), np.uint32)
    words.take(position, out=here, mode="clip")
    hashes.fill(0)
    last = len(starts)
    for step, count in enumerate(active):
        tail[count:last] = here[count:last]
        words[step + 1 :].take(position[:count], out=after[:count], mode="clip")
        _join(here[:count], after[:count], right[:count], left[:count], k[:count], t[:count])
        _mix(hashes[:count], k[:count], t[:count])
        here, after, last = after, here, count
    tail[:last] = here[:last]
    sizes = lengths.astype(np.uint32)
    position += lengths >> 2
    words[1:].take(position, out=after, mode="clip")
    _join(tail, after, right, left, k, t)
    np.bitwise_and(k, _tail_masks(sizes), out=k)
    _scramble(k, t)
    np.bitwise_xor(hashes, k, out=hashes)
    _finish(hashes, sizes, t)


def _tail_masks(sizes: Words) -> Words:
    """A mask for each length, with the bits of the bytes behind its last whole block."""
    bits = sizes & np.uint32(3)
    np.left_shift(bits, np.uint32(3), out=bits)
    np.left_shift(np.uint32(1), bits, out=bits)
    np.subtract(bits, np.uint32(1), out=bits)
    return bits


def _words_over(data: Bytes, starts: Offsets, lengths: Offsets) -> tuple[Words, int]:
    """Words that cover the ranges and one more word, and the byte at which they begin.

    They are a view of the buffer if it extends behind the ranges, else a padded copy of that part.
    """
    low, high = int(starts.min()) & ~7, int((starts + lengths).max())
    if high + 8 <= len(data):
        return data[low : low + ((high - low + 8) & ~3)].view("<u4"), low
    padded = np.zeros((high - low + 11) & ~3, np.uint8)
    padded[: high - low] = data[low:high]
    return padded.view("<u4"), low


def _join(here: Words, after: Words, right: Words, left: Words, k: Words, t: Words) -> None:
    """Write the unaligned word that begins in ``here`` to ``k``. Shifts by 32 result in 0."""
    np.right_shift(here, right, out=k)
    np.left_shift(after, left, out=t)
    np.bitwise_or(k, t, out=k)


def _scramble(k: Words, t: Words) -> None:
    np.multiply(k, _C1, out=k)
    np.left_shift(k, _R15, out=t)
    np.right_shift(k, _R17, out=k)
    np.bitwise_or(k, t, out=k)
    np.multiply(k, _C2, out=k)


def _mix(hashes: Words, k: Words, t: Words) -> None:
    """Take one block into the hashes; destroys ``k``."""
    _scramble(k, t)
    np.bitwise_xor(hashes, k, out=hashes)
    np.left_shift(hashes, _R13, out=t)
    np.right_shift(hashes, _R19, out=hashes)
    np.bitwise_or(hashes, t, out=hashes)
    np.multiply(hashes, _FIVE, out=hashes)
    np.add(hashes, _ADDEND, out=hashes)


def _finish(hashes: Words, lengths: Words | np.uint32, t: Words) -> None:
    np.bitwise_xor(hashes, lengths, out=hashes)
    for shift, factor in ((_R16, _FINAL1), (_R13, _FINAL2)):
        np.right_shift(hashes, shift, out=t)
        np.bitwise_xor(hashes, t, out=hashes)
        np.multiply(hashes, factor, out=hashes)
    np.right_shift(hashes, _R16, out=t)
    np.bitwise_xor(hashes, t, out=hashes)

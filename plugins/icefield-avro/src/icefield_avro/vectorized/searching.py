"""Finding a run of bytes everywhere in a buffer, as where records may start."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from icefield_avro.arrays import Vector
from icefield_avro.vectorized.byte_buffer import ByteBuffer

_WORD: Final = 8
_SLOTS_LOG: Final = 12
_MULTIPLIERS: Final = tuple(np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93))
_TO_SLOT: Final = np.uint64(64 - _SLOTS_LOG)


def find_all(buffer: ByteBuffer, wanted: bytes) -> Vector:
    """The places, ascending, of the bytes, or of bytes with the same start and end."""
    found = _by_words(buffer, wanted)
    if found is None:
        matches = re.compile(re.escape(wanted)).finditer(buffer.raw, 0, buffer.end)
        found = np.fromiter((match.start() for match in matches), np.int64)
    return found


def _by_words(buffer: ByteBuffer, wanted: bytes) -> Vector | None:
    """Find every place by words at even distances: each occurrence of the bytes contains one such word.

    None if there are too few bytes for that, or if words in them repeat.
    """
    distance = (len(wanted) - _WORD + 1) // _WORD * _WORD
    if distance < _WORD:
        return None
    words = np.frombuffer(b"".join(wanted[at : at + _WORD] for at in range(distance)), "<u8")
    for multiplier in _MULTIPLIERS:
        slots = _slots(words, multiplier)
        if len(np.unique(slots)) == distance:
            break
    else:
        return None
    is_taken, place_of = np.zeros(1 << _SLOTS_LOG, bool), np.zeros(1 << _SLOTS_LOG, np.int64)
    is_taken[slots], place_of[slots] = True, np.arange(distance)
    held = np.frombuffer(buffer.raw, "<u8", buffer.end // _WORD)[:: distance // _WORD]
    slots = _slots(held, multiplier)
    hits = np.flatnonzero(is_taken[slots])
    places = place_of[slots[hits]]
    starts = hits * distance - places
    # The bytes in between are not compared, so a place may be wrong.
    first, last = words[0], np.frombuffer(wanted[-_WORD:], "<u8")[0]
    starts = starts[(starts >= 0) & (starts <= buffer.end - len(wanted))]
    found: Vector = starts[(buffer.words[starts] == first) & (buffer.words[starts + (len(wanted) - _WORD)] == last)]
    return found


def _slots(words: Vector, multiplier: np.uint64) -> Vector:
    """The slots of words in a table: the top bits of a product modulo 2**64, which depend on all bits of the word.

    An example with the first multiplier: the words 1 and 2 get the slots 2,531 and 966, far from each other.
    """
    return ((words * multiplier) >> _TO_SLOT).view(np.int64)

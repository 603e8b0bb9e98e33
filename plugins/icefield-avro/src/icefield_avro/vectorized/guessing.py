"""Guesses at where records start inside a block. Guesses may be wrong: see ``starts``.

Long records, like manifest entries, mostly begin with similar bytes: a path below the table's location. Such bytes are
searched, and a walk over the fields before them must lead to them. Short records are found by trial: a walk begins at
every byte of a small window. Most walks fail, and a record starts where most of the remaining walks meet.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from icefield_avro.arrays import Vector
from icefield_avro.vectorized.byte_buffer import ByteBuffer
from icefield_avro.vectorized.nested import ArrayStep, RecordStep
from icefield_avro.vectorized.searching import find_all
from icefield_avro.vectorized.steps import OptionalStep, SizedStep, Step

_LONG_RECORD: Final = 120  # bytes on average
_LEAST_PREFIX: Final = 8
_MOST_PREFIX: Final = 96
_FIELDS_BEFORE_STRING: Final = 16
_SAMPLES: Final = 64
_MOST_DISTANCES: Final = 4
_WALKS_TO_LINE: Final = 3
_WALKS: Final = 6
_NO_BRANCH: Final = np.uint8(0xFD)  # bits that neither branch of a union has


def guess_starts(buffer: ByteBuffer, begins: Vector, counts: Vector, record: RecordStep) -> Vector:
    """Places where records may start, besides the starts of blocks."""
    total = int(counts.sum())
    if total <= 2 * len(begins) or not buffer.end:
        return np.zeros(0, np.int64)
    average = buffer.end / total
    buffer.guess(int(4 * average) + 64)
    try:
        if average >= _LONG_RECORD:
            guesses = _by_string(buffer, begins, total, record)
            if len(guesses):
                return guesses
        return _by_trying(buffer, total, average, record)
    finally:
        buffer.guess(0)


def _by_string(buffer: ByteBuffer, begins: Vector, total: int, record: RecordStep) -> Vector:
    """Guess from the bytes that the first string of the first records of blocks have in common."""
    nothing = np.zeros(0, np.int64)
    place = next((i for i, step in enumerate(record.steps[:_FIELDS_BEFORE_STRING]) if _is_string(step)), None)
    if place is None:
        return nothing
    starts, lengths = _strings(buffer, begins, record, place)
    some = slice(None, None, -(-len(starts) // _SAMPLES))
    places = zip(starts[some].tolist(), lengths[some].tolist(), strict=True)
    prefix = _common_prefix([bytes(buffer.raw[start : start + length]) for start, length in places])
    if len(prefix) < _LEAST_PREFIX:
        return nothing
    hits = find_all(buffer, prefix)
    distances, often = np.unique(starts - begins, return_counts=True)
    if len(distances) == 1 and len(hits) == total and hits[0] >= distances[0]:
        candidates: Vector = hits - distances[0]
        return candidates  # one for each record: the walk from them shows whether they are right
    guesses = []
    for distance in distances[np.argsort(-often, kind="stable")][:_MOST_DISTANCES].tolist():
        candidates = hits[hits >= distance] - distance
        found, _ = _strings(buffer, candidates, record, place)
        guesses.append(candidates[found == candidates + distance])
    return np.concatenate(guesses)


def _common_prefix(strings: list[bytes]) -> bytes:
    """The bytes that all strings start with, up to a limit; of a single string, a part that others may share."""
    if len(strings) == 1:
        return strings[0][: _MOST_PREFIX // 2]
    low, high = min(strings), max(strings)
    length = next((i for i, pair in enumerate(zip(low, high, strict=False)) if pair[0] != pair[1]), len(low))
    return low[: min(length, _MOST_PREFIX)]


def _is_string(step: object) -> bool:
    return isinstance(step, SizedStep) and step.node.wire == "string"


def _strings(buffer: ByteBuffer, at: Vector, record: RecordStep, place: int) -> tuple[Vector, Vector]:
    """Where the string of step number ``place`` is in the records at the positions, and how long it is."""
    for step in record.steps[:place]:
        at = step.skip(buffer, at)
    start, length, _ = buffer.sized(at)
    return start, length


def _by_trying(buffer: ByteBuffer, total: int, average: float, record: RecordStep) -> Vector:
    """Guess by walks from every byte of windows that are spread over the blocks.

    Walks that pass real records meet, at the start of the first record after the window.
    """
    windows = _windows(buffer, total, average, record)
    if not len(windows):
        return windows
    width = int(1.25 * average) + 16
    at, window = _candidates(buffer, windows, width, record.steps[0])
    line = windows + width
    limit = buffer.ends[np.searchsorted(buffer.ends, windows, side="right")]
    votes = np.ones(len(at), np.int64)
    for turn in range(_WALKS):
        behind = (at < line[window]) | (turn >= _WALKS_TO_LINE)
        arrived = at[~behind], window[~behind], votes[~behind]
        walked = _walked(buffer, at[behind], window[behind], votes[behind], limit, record)
        parts = [np.concatenate(pair) for pair in zip(arrived, walked, strict=True)]
        at, window, votes = _met(*parts)
    return _most_votes(at, window, votes)


def _walked(
    buffer: ByteBuffer, at: Vector, window: Vector, votes: Vector, limit: Vector, record: RecordStep
) -> tuple[Vector, Vector, Vector]:
    """Advance the walks by one record, and drop failed walks."""
    for step in record.strides:
        if not len(at):
            break
        at = step.skip(buffer, at)
        alive = at < limit[window]
        if np.count_nonzero(alive) < 0.7 * len(alive):
            at, window, votes = at[alive], window[alive], votes[alive]
    alive = at < limit[window]
    return at[alive], window[alive], votes[alive]


def _windows(buffer: ByteBuffer, total: int, average: float, record: RecordStep) -> Vector:
    """Return the starts of windows. Their number balances the cost of trials with the length of the walk."""
    turn = 5e-6 * max(1, sum(map(_weight, record.steps)))  # seconds for one more record in the longest walk
    trying = average * (0.015e-6 if isinstance(record.steps[0], OptionalStep) else 0.02e-6 * len(record.steps))
    distance = max(int(math.sqrt(total * trying / turn) * average), int(8 * average))
    places = np.arange(distance, buffer.end, distance)
    # a window too near to the end of its block would see no record begin
    room = buffer.ends[np.searchsorted(buffer.ends, places, side="right")] - places
    return places[room > (_WALKS + 3) * average]


def _weight(step: Step) -> int:
    """The work of a step for a walk, even if there are only a few walks."""
    match step:
        case OptionalStep():
            return _weight(step.inner)
        case ArrayStep():
            return 3 + 2 * _weight(step.item)
        case RecordStep():
            return sum(map(_weight, step.steps))
    return 1


def _candidates(buffer: ByteBuffer, windows: Vector, width: int, first: Step) -> tuple[Vector, Vector]:
    """The positions in the windows where a record could begin, and the window of each."""
    at = windows[:, None] + np.arange(width)
    if not isinstance(first, OptionalStep):
        return at.ravel(), np.repeat(np.arange(len(windows)), width)
    window, place = np.nonzero((buffer.bytes[at] & _NO_BRANCH) == 0)
    return windows[window] + place, window


def _met(at: Vector, window: Vector, votes: Vector) -> tuple[Vector, Vector, Vector]:
    """Walks that reach the same position continue as one walk, with all their votes."""
    if not len(at):
        return at, window, votes
    order = np.argsort(at)
    at, window, votes = at[order], window[order], votes[order]
    first = np.flatnonzero(np.concatenate([[True], at[1:] != at[:-1]]))
    return at[first], window[first], np.add.reduceat(votes, first)


def _most_votes(at: Vector, window: Vector, votes: Vector) -> Vector:
    """The place with the most votes of each window."""
    if not len(at):
        return at
    order = np.lexsort((votes, window))
    last = np.flatnonzero(np.append(np.diff(window[order]) != 0, True))
    return at[order[last]]

"""The run-length encodings of a stripe's lengths, just enough to compute their sum.

Arrow allocates the sum of the lengths unchecked, and ends the process when the allocation fails. Where a bound of the
sum is enough, each run of up to 512 numbers is bounded as a whole.
"""

from __future__ import annotations

import numpy as np

from icefield_orc.protobuf import varint, zigzag

_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
_SHORT_REPEAT, _DIRECT, _PATCHED, _DELTA = range(4)


def sum_of_lengths(data: bytes, second_version: bool, *, exact: bool = False) -> tuple[int, int]:
    """Return the number of lengths in a stream, and their sum; an upper bound of the sum unless ``exact``.

    Raises ``ValueError`` for bytes that are no such stream, and for a length below zero.
    """
    return _second(data, exact) if second_version else _first(data)


def _first(data: bytes) -> tuple[int, int]:
    position, end, count, total = 0, len(data), 0, 0
    while position < end:
        control = data[position]
        position += 1
        if control < 128:
            if position >= end:
                raise ValueError("a run is cut off")
            step = data[position] - 256 if data[position] > 127 else data[position]
            base, position = varint(data, position + 1)
            run = control + 3
            if base + step * (run - 1) < 0:
                raise ValueError("a length below zero")
            total += base * run + step * (run * (run - 1) // 2)
        else:
            run = 256 - control
            for _ in range(run):
                base, position = varint(data, position)
                total += base
        count += run
    return count, total


def _second(data: bytes, exact: bool) -> tuple[int, int]:
    position, end, count, total = 0, len(data), 0, 0
    while position < end:
        head = data[position]
        kind = head >> 6
        if kind == _SHORT_REPEAT:
            start, position = position + 1, position + 2 + (head >> 3 & 7)
            run = (head & 7) + 3
            total += int.from_bytes(data[start:position], "big") * run
            if position > end:
                raise ValueError("a run is cut off")
            count += run
            continue
        if position + 2 > end:
            raise ValueError("a run is cut off")
        code = head >> 1 & 31
        run = ((head & 1) << 8 | data[position + 1]) + 1
        position += 2
        if kind == _DIRECT:
            width = _WIDTHS[code]
            start, position = position, position + (run * width + 7) // 8
            if position > end:
                raise ValueError("a run is cut off")
            total += _sum(data[start:position], run, width) if exact else run * ((1 << width) - 1)
        elif kind == _DELTA:
            added, position = _delta(data, position, run, _WIDTHS[code] if code else 0)
            total += added
        else:
            added, position = _patched(data, position, run, _WIDTHS[code])
            total += added
        count += run
    return count, total


def _delta(data: bytes, position: int, run: int, width: int) -> tuple[int, int]:
    base, position = varint(data, position)
    step, position = varint(data, position)
    step = zigzag(step)
    if not width:
        if base + step * (run - 1) < 0:
            raise ValueError("a length below zero")
        return base * run + step * (run * (run - 1) // 2), position
    start, position = position, position + (max(0, run - 2) * width + 7) // 8
    if position > len(data):
        raise ValueError("a run is cut off")
    sign, value, total = (-1 if step < 0 else 1), base + step, base
    for change in [0, *_unpacked(data[start:position], max(0, run - 2), width)][: run - 1]:
        value += sign * change
        if value < 0:
            raise ValueError("a length below zero")
        total += value
    return total, position


def _patched(data: bytes, position: int, run: int, width: int) -> tuple[int, int]:
    if position + 2 > len(data):
        raise ValueError("a run is cut off")
    third, fourth = data[position], data[position + 1]
    base_bytes, patch_width = (third >> 5) + 1, _WIDTHS[third & 31]
    gap_width, patches = (fourth >> 5) + 1, fourth & 31
    entry_width = next((each for each in _WIDTHS if each >= gap_width + patch_width), 0)
    start = position + 2 + base_bytes
    middle = start + (run * width + 7) // 8
    end = middle + (patches * entry_width + 7) // 8
    if end > len(data) or not entry_width:
        raise ValueError("a run is cut off")
    base = int.from_bytes(data[position + 2 : start], "big")
    if base >> (base_bytes * 8 - 1):
        raise ValueError("a length below zero")
    mask = (1 << patch_width) - 1
    added = sum((entry & mask) << width for entry in _unpacked(data[middle:end], patches, entry_width))
    return base * run + _sum(data[start:middle], run, width) + added, end


def _sum(data: bytes, count: int, width: int) -> int:
    """Return the sum of ``count`` big-endian numbers of ``width`` bits."""
    if width == 8:
        return int(np.add.reduce(np.frombuffer(data, np.uint8), dtype=np.int64))
    ones = np.unpackbits(np.frombuffer(data, np.uint8))[: count * width].reshape(count, width)
    set_bits: list[int] = np.add.reduce(ones, axis=0, dtype=np.int64).tolist()
    return sum(number << width - 1 - place for place, number in enumerate(set_bits))


def _unpacked(data: bytes, count: int, width: int) -> list[int]:
    """Numbers that are in ``width`` bits each, the highest bit first."""
    if not count:
        return []
    bits = np.unpackbits(np.frombuffer(data, np.uint8))[: count * width].reshape(count, width)
    powers = np.left_shift(np.uint64(1), np.arange(width - 1, -1, -1, dtype=np.uint64))
    numbers: list[int] = (bits.astype(np.uint64) @ powers).tolist()
    return numbers

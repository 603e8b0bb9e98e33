"""Sets of row positions as portable 64-bit Roaring bitmaps, unpacked to sorted arrays.

Spec: the Roaring format specification, "extension for 64-bit implementations": a count, then for each 32-bit key in
ascending order the key and a 32-bit bitmap. A 32-bit bitmap holds containers of the positions that share their upper
16 bits of 32: a sorted array, a bit set of 8 kB, or runs. For the positions 0 and 5::

    01 00 00 00 00 00 00 00   one bitmap
    00 00 00 00               its key: the positions begin at 0 << 32
    3A 30 00 00 01 00 00 00   cookie: no runs; one container
    00 00 01 00               its upper bits: 0; two values, less one
    10 00 00 00               it begins 16 bytes from the cookie
    00 00 05 00               the values
"""

from __future__ import annotations

import struct
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from icefield.base.limits import MAX_DELETED_POSITIONS

Positions: TypeAlias = npt.NDArray[np.int64]
"""Positions of rows in a file, ascending and distinct."""

_Shorts: TypeAlias = npt.NDArray[np.int64]

PLAIN: Final = 12_346
WITH_RUNS: Final = 12_347
LARGEST_ARRAY: Final = 4096
BITS_BYTES: Final = 8192
OFFSETS_FROM: Final = 4
"""The number of containers from which a bitmap with runs has offsets."""

_MOST_KEYS: Final = 1 << 31
_MOST_BITMAPS: Final = 4_096
"""More bitmaps of 2^32 rows than a file can need. The limit bounds the time for empty bitmaps of twelve bytes."""


def decode_positions(data: memoryview, *, cardinality: int | None = None, most: int | None = None) -> Positions:
    """The positions in a serialised bitmap. Raises ``ValueError`` for a malformed bitmap.

    ``cardinality`` and ``most``: see ``decode_vector``. The number of positions is known before they are unpacked.
    """
    (count,) = _unpack("<Q", data, 0)
    if count > len(data) // 12:
        raise ValueError(f"{count} bitmaps in {len(data)} bytes")
    if count > _MOST_BITMAPS:
        raise ValueError(f"{count} bitmaps; no more than {_MOST_BITMAPS} are read")
    bitmaps: list[tuple[int, _Bitmap]] = []
    place, last = 8, -1
    for _ in range(count):
        (key,) = _unpack("<I", data, place)
        if not last < key < _MOST_KEYS:
            raise ValueError(f"key {key} after {last}")
        bitmap = _Bitmap(data[place + 4 :])
        bitmaps.append((key, bitmap))
        place, last = place + 4 + bitmap.size, key
    if place != len(data):
        raise ValueError(f"{len(data) - place} bytes are left over")
    total = sum(bitmap.cardinality for _, bitmap in bitmaps)
    if cardinality is not None and total != cardinality:
        raise ValueError(f"{total} positions where {cardinality} are stated")
    if most is not None and total > most:
        raise ValueError(f"{total} positions in a file of {most} rows")
    if total > MAX_DELETED_POSITIONS:
        raise ValueError(f"{total} positions; no more than {MAX_DELETED_POSITIONS} are read")
    out = np.empty(total, np.int64)
    at = 0
    for key, bitmap in bitmaps:
        part = out[at : at + bitmap.cardinality]
        bitmap.unpack(part)
        part += key << 32
        at += bitmap.cardinality
    if most is not None and total and out[-1] >= most:
        raise ValueError(f"position {out[-1]} in a file of {most} rows")
    return out


class _Bitmap:
    """A 32-bit bitmap at the start of some bytes: its parsed header, and the offsets of its containers."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        (cookie,) = _unpack("<I", data, 0)
        place = 4
        if cookie & 0xFFFF == WITH_RUNS:
            count = (cookie >> 16) + 1
            flags = np.unpackbits(_take(data, place, (count + 7) // 8, np.uint8), bitorder="little")
            place += (count + 7) // 8
            self._is_run = flags[:count].astype(bool)
            has_offsets = count >= OFFSETS_FROM
        elif cookie == PLAIN:
            (count,) = _unpack("<I", data, place)
            place += 4
            if count > 1 << 16:
                raise ValueError(f"{count} containers")
            self._is_run = np.zeros(count, bool)
            has_offsets = True
        else:
            raise ValueError(f"cookie {cookie}")
        header = _take(data, place, 2 * count, np.dtype("<u2")).reshape(-1, 2).astype(np.int64)
        place += 4 * count + (4 * count if has_offsets else 0)
        self._keys, self._counts = header[:, 0], header[:, 1] + 1
        if np.any(np.diff(self._keys) <= 0):
            raise ValueError("containers out of order")
        self._is_bits = ~self._is_run & (self._counts > LARGEST_ARRAY)
        self._starts = self._placed(place)
        self.size = int(self._starts[-1])
        if self.size > len(data):
            raise ValueError("it is cut off")
        self.cardinality = int(self._counts.sum())

    def _placed(self, place: int) -> _Shorts:
        """Where each container begins, and where the last one ends."""
        sizes = np.where(self._is_bits, BITS_BYTES, 2 * self._counts)
        if not self._is_run.any():
            return place + np.concatenate(([0], np.cumsum(sizes)))
        starts = [place]
        for is_run, size in zip(self._is_run.tolist(), sizes.tolist(), strict=True):
            # The number of runs precedes them.
            starts.append(starts[-1] + (2 + 4 * _unpack("<H", self._data, starts[-1])[0] if is_run else size))
        return np.array(starts, np.int64)

    def unpack(self, out: Positions) -> None:
        """Put the values into an array of ``cardinality``."""
        if not (self._is_run.any() or self._is_bits.any()):
            start, end = int(self._starts[0]), int(self._starts[-1])
            out[:] = _take(self._data, start, (end - start) // 2, np.dtype("<u2"))
            out += np.repeat(self._keys << 16, self._counts)
        else:
            ends = np.cumsum(self._counts)
            for number, (key, count, end) in enumerate(
                zip(self._keys.tolist(), self._counts.tolist(), ends.tolist(), strict=True)
            ):
                part = out[end - count : end]
                part[:] = self._container(number, count)
                part += key << 16
        if np.any(out[1:] <= out[:-1]):
            raise ValueError("positions out of order")

    def _container(self, number: int, count: int) -> npt.NDArray[Any]:
        start = int(self._starts[number])
        if self._is_run[number]:
            (runs,) = _unpack("<H", self._data, start)
            pairs = _take(self._data, start + 2, 2 * runs, np.dtype("<u2")).reshape(-1, 2).astype(np.int64)
            begins, lengths = pairs[:, 0], pairs[:, 1] + 1
            ends = begins + lengths
            if int(lengths.sum()) != count or np.any(ends > 1 << 16) or np.any(begins[1:] < ends[:-1]):
                raise ValueError("runs that do not fit their container")
            within: npt.NDArray[Any] = np.arange(count) + np.repeat(begins - (np.cumsum(lengths) - lengths), lengths)
            return within
        if self._is_bits[number]:
            values = np.flatnonzero(np.unpackbits(_take(self._data, start, BITS_BYTES, np.uint8), bitorder="little"))
            if len(values) != count:
                raise ValueError(f"{len(values)} bits are set where {count} are stated")
            return values
        return _take(self._data, start, count, np.dtype("<u2"))


def _unpack(form: str, data: memoryview, place: int) -> tuple[int, ...]:
    if place + struct.calcsize(form) > len(data):
        raise ValueError("it is cut off")
    return struct.unpack_from(form, data, place)


def _take(data: memoryview, place: int, count: int, kind: Any) -> npt.NDArray[Any]:
    if place + count * np.dtype(kind).itemsize > len(data):
        raise ValueError("it is cut off")
    return np.frombuffer(data, kind, count, place)

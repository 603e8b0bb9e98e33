"""Theta sketches of distinct values, made by numpy.

A sketch of ``k`` entries keeps the ``k`` smallest distinct hashes. Theta is the smallest hash that it does not keep:
the sketch has every hash below theta, and theta determines their share of all hashes. Up to ``k`` values it is exact;
beyond, its relative standard error is ``1 / sqrt(k - 1)``, 1.6 % for 4096. Spec: Puffin,
"apache-datasketches-theta-v1".
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
import pyarrow as pa
from icefield.toolkit import distinct

from icefield_maintenance.theta.hashes import Hashes, theta_hashes

NOMINAL_ENTRIES: Final = 4096
"""Hashes in a sketch, as DataSketches has it by default."""

_MAX_THETA: Final = (1 << 63) - 1
_SEED_HASH: Final = 0x93CC
"""The seed hash in a sketch: 16 bits of the hash of the seed 9001."""

_READ_ONLY, _EMPTY, _COMPACT, _ORDERED, _SINGLE = 0x02, 0x04, 0x08, 0x10, 0x20
_WAITING: Final = 1 << 18
"""Hashes that wait to be merged."""


class ThetaSketch:
    """How many distinct values a column has, of values in their binary form, in bounded memory."""

    def __init__(self, entries: int = NOMINAL_ENTRIES) -> None:
        self._entries = entries
        self._theta = _MAX_THETA
        self._hashes: Hashes = np.zeros(0, np.uint64)
        self._waiting: list[Hashes] = []
        self._count = 0

    def update(self, values: pa.BinaryArray) -> None:
        """Add values; null and empty values do not count, as in DataSketches."""
        hashes = theta_hashes(values)
        # The libraries of DataSketches mark an empty slot by zero, so they leave out a hash of zero.
        hashes = hashes[(hashes < np.uint64(self._theta)) & (hashes != 0)]
        self._waiting.append(hashes)
        self._count += len(hashes)
        if self._count > _WAITING:
            self.settle()

    def merge(self, other: ThetaSketch) -> None:
        """Add the hashes of another sketch of the same number of entries."""
        other.settle()
        if other._theta < self._theta:
            self.settle()
            self._theta = other._theta
            self._hashes = self._hashes[self._hashes < np.uint64(self._theta)]
        hashes = other._hashes[other._hashes < np.uint64(self._theta)]
        self._waiting.append(hashes)
        self._count += len(hashes)
        if self._count > _WAITING:
            self.settle()

    @property
    def estimate(self) -> float:
        """The number of distinct values."""
        self.settle()
        return float(len(self._hashes)) * (_MAX_THETA / self._theta)

    def to_bytes(self) -> bytes:
        """The compact, ordered form: little endian, as every library of DataSketches reads it."""
        self.settle()
        count = len(self._hashes)
        flags = _READ_ONLY | _COMPACT | _ORDERED
        exact = self._theta == _MAX_THETA
        longs = 3 if not exact else 1 if count <= 1 else 2
        if exact and count <= 1:
            flags |= _SINGLE if count else _EMPTY
        head = struct.pack("<BBBBBBH", longs, 3, 3, 0, 0, flags, _SEED_HASH)
        if longs > 1:
            head += struct.pack("<if", count, 1.0)
        if longs > 2:
            head += struct.pack("<q", self._theta)
        return head + self._hashes.astype("<u8").tobytes()

    def settle(self) -> None:
        """Merge the waiting hashes, so that the sketch is small."""
        if not self._waiting:
            return
        hashes = distinct(self._hashes, *self._waiting)
        if len(hashes) > self._entries:
            self._theta = int(hashes[self._entries])
            hashes = hashes[: self._entries]
        self._hashes, self._waiting, self._count = hashes, [], 0

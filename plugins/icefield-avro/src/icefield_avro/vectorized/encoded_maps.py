"""Maps that are read as the bytes that encode them, to be written again without being decoded."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from icefield_avro.arrays import Vector
from icefield_avro.vectorized.byte_buffer import ByteBuffer, Unproven
from icefield_avro.vectorized.rows import Rows
from icefield_avro.vectorized.slices import from_slices
from icefield_avro.vectorized.steps import Read, Step

_MORE: Final = np.uint8(0x80)
_FOUR: Final = np.uint32(0x80808080)
_LONGEST_INTEGER: Final = 10


class EncodedStep:
    """A map that is read as its bytes. Its entries are skipped, which proves where it ends.

    ``integers``: the map holds nothing but integers.
    """

    def __init__(self, entries: Step, *, integers: bool) -> None:
        self.skip = entries.skip
        self._integers = integers

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        end = self.skip(buffer, at)
        return partial(self._finish, buffer, at, end - at, rows), end

    def _finish(self, buffer: ByteBuffer, start: Vector, length: Vector, rows: Rows) -> pa.Array:
        made = from_slices(pa.binary(), buffer, start, length, rows, None)
        if self._integers and has_long_integer(np.frombuffer(made.buffers()[2], np.uint8)):
            raise Unproven("an integer that is too long")
        return made


def has_long_integer(data: Vector) -> bool:
    """Whether one of several consecutive integers has more than 64 bits. A skip does not check their lengths."""
    # Ten bytes with the high bit hold four that are aligned. Few integers of maps are that long.
    aligned = data[: len(data) & ~3].view("<u4")
    if not np.count_nonzero(aligned & _FOUR == _FOUR):
        return False
    stops = np.flatnonzero(data < _MORE)
    lengths = np.diff(stops, prepend=-1)
    if np.count_nonzero(lengths > _LONGEST_INTEGER):
        return True
    return bool(np.count_nonzero(data[stops[lengths == _LONGEST_INTEGER]] > 1))

"""Deletion vectors: the positions of the deleted rows of one data file, as a blob ``deletion-vector-v1``.

Spec: Puffin, "deletion-vector-v1 blob type". The length and the checksum are big endian, all else little endian::

    00 00 00 22 | D1 D3 39 64 | vector | F7 A6 B4 B5
    length of     magic         see      CRC-32 of magic
    magic+vector                roaring  and vector
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Final

from icefield.errors import InvalidFile
from icefield.puffin.roaring import Positions, decode_positions
from icefield.puffin.roaring_encoding import encode_each
from icefield.toolkit import reporting_damage

_MAGIC: Final = bytes.fromhex("D1D33964")
_FRAME: Final = 12
"""Bytes of a blob that are no vector: its length, the magic, the checksum."""


def decode_vector(blob: bytes, location: str, *, cardinality: int | None = None, most: int | None = None) -> Positions:
    """The positions in a blob, ascending.

    ``cardinality`` is the expected number of positions. ``most`` is the row count of the data file, which bounds the
    number of positions and each position. The number is checked before memory is allocated. Raises ``InvalidFile``.
    """
    if len(blob) < _FRAME or blob[4:8] != _MAGIC:
        raise _damaged(location, "it does not begin as one does")
    (length,) = struct.unpack(">i", blob[:4])
    if length != len(blob) - 8:
        raise _damaged(location, f"it states a length of {length} bytes and has {len(blob) - 8}")
    (checksum,) = struct.unpack(">I", blob[-4:])
    if checksum != zlib.crc32(memoryview(blob)[4:-4]):
        raise _damaged(location, "its checksum is another")
    with reporting_damage(location, "the deletion vector"):
        return decode_positions(memoryview(blob)[8:-4], cardinality=cardinality, most=most)


def encode_vectors(sets: Sequence[Positions]) -> list[bytes]:
    """The blobs of sets of ascending, distinct positions. Raises ``InvalidArgument`` for a negative position."""
    bodies = [_MAGIC + vector for vector in encode_each(sets)]
    return [struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body)) for body in bodies]


def _damaged(location: str, why: str) -> InvalidFile:
    return InvalidFile(f"{location} is damaged: the deletion vector: {why}", location=location)

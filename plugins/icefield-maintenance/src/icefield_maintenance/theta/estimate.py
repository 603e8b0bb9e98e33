"""How many distinct values a column has, by the blob ``apache-datasketches-theta-v1`` of a statistics file.

Spec: Puffin, "apache-datasketches-theta-v1 blob type". The blob's property ``ndv`` holds the number. Without it, the
number is estimated from two values in the header of the sketch: the count of retained hashes, and theta. The sketch
retains every hash below theta, which is given as a share of the range of all hashes.
"""

from __future__ import annotations

import struct
from typing import Final

from icefield.errors import InvalidFile, UnsupportedFeature
from icefield.puffin import Blob

_FAMILY: Final = 3
_SERIAL_VERSION: Final = 3
_BIG_ENDIAN, _EMPTY = 0x01, 0x04
_MAX_THETA: Final = (1 << 63) - 1


def distinct_values(blob: Blob) -> int | None:
    """The number of distinct values in a blob's properties, or None."""
    stated = blob.strings.get("ndv", "")
    return int(stated) if stated.isascii() and stated.isdigit() and len(stated) < 20 else None


def theta_estimate(sketch: bytes, location: str) -> float:
    """The estimate of a compact theta sketch, from its header alone.

    Raises ``InvalidFile`` for damaged bytes, and ``UnsupportedFeature`` for another form of sketch.
    """
    if len(sketch) < 8:
        raise _damaged(location, f"{len(sketch)} bytes are too few")
    longs, version, family, flags = sketch[0] & 0x3F, sketch[1], sketch[2], sketch[5]
    if version != _SERIAL_VERSION or family != _FAMILY or flags & _BIG_ENDIAN:
        raise UnsupportedFeature(
            f"{location}: a sketch of family {family} in version {version}; compact theta sketches are of family "
            f"{_FAMILY} in version {_SERIAL_VERSION}",
            location=location,
        )
    if flags & _EMPTY:
        return 0.0
    if longs == 1:  # a single value: its hash follows
        if len(sketch) < 16:
            raise _damaged(location, "it is cut off")
        return 1.0
    if longs not in (2, 3) or len(sketch) < 8 * longs:
        raise _damaged(location, f"a header of {8 * longs} bytes in {len(sketch)}")
    (count,) = struct.unpack_from("<i", sketch, 8)
    theta = struct.unpack_from("<q", sketch, 16)[0] if longs == 3 else _MAX_THETA
    if count < 0 or len(sketch) < 8 * (longs + count) or theta <= 0:
        raise _damaged(location, f"{count} hashes in {len(sketch)} bytes")
    return float(count) * (_MAX_THETA / theta)


def _damaged(location: str, why: str) -> InvalidFile:
    return InvalidFile(f"{location} is damaged: the theta sketch: {why}", location=location)

"""Variants in their binary encoding, made from Python values plainly, one at a time."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Leaf(NamedTuple):
    """An encoded primitive."""

    data: bytes


def leaf(kind: int, payload: bytes = b"") -> Leaf:
    """A primitive by its number in the format."""
    return Leaf(bytes([kind << 2]) + payload)


def decimal(kind: int, unscaled: int, scale: int) -> Leaf:
    """A decimal of 4, 8 or 16 bytes: kind 8, 9 or 10."""
    return leaf(kind, bytes([scale]) + unscaled.to_bytes(4 << kind - 8, "little", signed=True))


def variant(value: Any) -> dict[str, bytes]:
    """A variant: integers as narrow as they can be, floats as doubles, short strings as short ones."""
    names = sorted(set(_names(value)))
    return {"metadata": metadata(names), "value": encoded(value, {name: at for at, name in enumerate(names)})}


def metadata(names: list[str]) -> bytes:
    """A dictionary of names."""
    texts = [name.encode() for name in names]
    ends = [sum(map(len, texts[:at])) for at in range(len(texts) + 1)]
    size = _width(max(ends[-1], len(names)))
    return (
        bytes([1 | size - 1 << 6]) + b"".join(n.to_bytes(size, "little") for n in (len(names), *ends)) + b"".join(texts)
    )


def encoded(value: Any, ids: Mapping[str, int]) -> bytes:
    """Encode a value, with those ids for its names."""
    if isinstance(value, Leaf):
        return value.data
    if isinstance(value, dict):
        named = sorted(value.items(), key=lambda each: each[0].encode())
        size = _width(max((ids[name] for name in value), default=0))
        return _container(2, [ids[name] for name, _ in named], size, [encoded(part, ids) for _, part in named])
    if isinstance(value, list):
        return _container(3, [], 0, [encoded(part, ids) for part in value])
    if value is None or isinstance(value, bool):
        return leaf({None: 0, True: 1, False: 2}[value]).data
    if isinstance(value, int):
        kind, code = next((k, c) for k, c, bits in _INTEGERS if -(1 << bits) <= value < 1 << bits)
        return leaf(kind, struct.pack(code, value)).data
    if isinstance(value, float):
        return leaf(7, struct.pack("<d", value)).data
    text = value.encode()
    return bytes([len(text) << 2 | 1]) + text if len(text) < 64 else leaf(16, struct.pack("<I", len(text)) + text).data


_INTEGERS = ((3, "<b", 7), (4, "<h", 15), (5, "<i", 31), (6, "<q", 63))


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _names(part)


def _container(basic: int, ids: list[int], id_size: int, parts: list[bytes]) -> bytes:
    ends = [sum(map(len, parts[:at])) for at in range(len(parts) + 1)]
    size, large = _width(ends[-1]), len(parts) > 255
    header = size - 1 | id_size - 1 << 2 | large << 4 if basic == 2 else size - 1 | large << 2
    count = len(parts).to_bytes(4 if large else 1, "little")
    numbers = [id_.to_bytes(id_size, "little") for id_ in ids] + [end.to_bytes(size, "little") for end in ends]
    return b"".join([bytes([basic | header << 2]), count, *numbers, *parts])


def _width(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


PRIMITIVES = {
    "true": leaf(1),
    "false": leaf(2),
    "int8": leaf(3, b"\xfb"),
    "int16": leaf(4, struct.pack("<h", -300)),
    "int32": leaf(5, struct.pack("<i", 70_000)),
    "int64": leaf(6, struct.pack("<q", 5 * 10**9)),
    "double": leaf(7, struct.pack("<d", -2.5)),
    "float": leaf(14, struct.pack("<f", 2.5)),
    "decimal4": decimal(8, -125, 2),
    "decimal8": decimal(9, 10**17, 4),
    "decimal16": decimal(10, -(10**30), 2),
    "date": leaf(11, struct.pack("<i", -1)),
    "timestamptz": leaf(12, struct.pack("<q", 7)),
    "timestamp": leaf(13, struct.pack("<q", -7)),
    "binary": leaf(15, b"\2\0\0\0\xff\0"),
    "string": leaf(16, b"\2\0\0\0ab"),
    "short string": Leaf(bytes([3 << 2 | 1]) + b"abc"),
    "time": leaf(17, struct.pack("<q", 86_399 * 10**6)),
    "timestamptz_ns": leaf(18, struct.pack("<q", 9)),
    "timestamp_ns": leaf(19, struct.pack("<q", -9)),
    "uuid": leaf(20, uuid.UUID(int=7 << 99).bytes),
}
"""A value of each primitive, strings both long and short."""

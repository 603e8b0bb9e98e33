"""Avro's integers one at a time: zigzag, then seven bits a byte, least significant first."""

from __future__ import annotations

from typing import Final

Data = bytes | bytearray

_WRAP: Final = 1 << 64


class Truncated(Exception):
    """The bytes end inside a value."""


class Malformed(Exception):
    """The bytes are not a value of the expected type. The message says why."""


def read_long(data: Data, position: int) -> tuple[int, int]:
    """The integer at ``position`` and the position after it. Raises ``Truncated`` or ``Malformed``."""
    try:
        byte = data[position]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
        value = byte & 0x7F
        shift = 7
        end = position + 1
        while True:
            byte = data[end]
            end += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise Malformed("an integer of more than ten bytes")
    except IndexError:
        raise Truncated from None
    if value >= _WRAP:
        raise Malformed("an integer of more than 64 bits")
    return (value >> 1) ^ -(value & 1), end


def encode_long(value: int) -> bytes:
    """An integer of 64 bits, signed, as Avro writes it."""
    rest = (value << 1) if value >= 0 else ((-value << 1) - 1)
    if rest < 0x80:
        return _SMALL[rest]
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_SMALL: Final = tuple(bytes((byte,)) for byte in range(128))


def encode_bytes(value: bytes) -> bytes:
    """A byte string with its length before it."""
    return encode_long(len(value)) + value

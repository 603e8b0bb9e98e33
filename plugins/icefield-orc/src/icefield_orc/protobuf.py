"""The wire format of the messages in an ORC file's tail: just enough to read them, and to add to one.

Every length is checked against the remaining bytes, so damaged bytes raise ``ValueError`` and never cause a large
allocation.
"""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 70

MOST_FIELDS = 1_000
"""Of a message that lists nothing: no version of the format has a tenth of them."""

_KINDS = 5
"""How many kinds of fields a message may repeat, at most."""

Item = tuple[int, "int | bytes"]
"""A field's number and its value: an unsigned integer, or the bytes of anything else."""


def items(data: bytes, most: int = MOST_FIELDS) -> Iterator[Item]:
    """The fields of a message, in order.

    Raises ``ValueError`` for bytes that are not a message, and for more than ``most`` fields.
    """
    position, end, left = 0, len(data), most
    while position < end:
        if not left:
            raise ValueError(f"a message of more than {most} fields")
        left -= 1
        key, position = varint(data, position)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, position = varint(data, position)
            yield number, value
            continue
        if wire == _BYTES:
            length, position = varint(data, position)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"a field of wire type {wire}")
        if length > end - position:
            raise ValueError("a field reaches beyond its message")
        yield number, data[position : position + length]
        position += length


def check_counts(data: bytes, most: int, what: str) -> None:
    """Raise ``ValueError`` if a field occurs more than ``most`` times, before any is decoded.

    ``what`` begins the error's message. Bytes that are no message are left to ``items``.
    """
    counts: dict[int, int] = {}
    position, end, left = 0, len(data), _KINDS * most
    while position < end:
        key, position = varint(data, position)
        counts[key] = count = counts.get(key, 0) + 1
        left -= 1
        if count > most or not left:
            raise ValueError(f"{what} more than {most} parts of a kind")
        wire = key & 7
        if wire == _VARINT:
            _, position = varint(data, position)
        elif wire == _BYTES:
            length, position = varint(data, position)
            position += length
        else:
            position += 8 if wire == _FIXED64 else 4


def varint(data: bytes, position: int) -> tuple[int, int]:
    """The unsigned number at a position, and the position after it."""
    if position < len(data) and data[position] < 0x80:
        return data[position], position + 1
    value = shift = 0
    while True:
        if position >= len(data) or shift >= _LONGEST_VARINT:
            raise ValueError("a number without end")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7


def integers(value: int | bytes) -> list[int]:
    """The numbers of a repeated field, packed or not."""
    if isinstance(value, int):
        return [value]
    found, position = [], 0
    while position < len(value):
        number, position = varint(value, position)
        found.append(number)
    return found


def integer(value: int | bytes) -> int:
    """Return a field's number; raise ``ValueError`` if the field holds bytes."""
    if not isinstance(value, int):
        raise ValueError("bytes where a number is due")
    return value


def blob(value: int | bytes) -> bytes:
    """Return a field's bytes; raise ``ValueError`` if the field holds a number."""
    if isinstance(value, int):
        raise ValueError("a number where bytes are due")
    return value


def zigzag(value: int) -> int:
    """The signed number that an unsigned number encodes."""
    return (value >> 1) ^ -(value & 1)


def write_varint(value: int) -> bytes:
    """The bytes of an unsigned number."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_bytes(number: int, data: bytes) -> bytes:
    """The bytes of a field that holds bytes."""
    return write_varint(number << 3 | _BYTES) + write_varint(len(data)) + data


def write_integer(number: int, value: int) -> bytes:
    """The bytes of a field that holds an unsigned number."""
    return write_varint(number << 3 | _VARINT) + write_varint(value)


def write_item(number: int, value: int | bytes) -> bytes:
    """Encode a field from ``items`` again.

    Fields of fixed width cannot be encoded, since ``items`` returns them as bytes.
    """
    return write_integer(number, value) if isinstance(value, int) else write_bytes(number, value)

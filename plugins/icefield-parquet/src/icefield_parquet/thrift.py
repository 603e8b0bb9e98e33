"""The elements of the schema in a footer's bytes: read and written anew, in Thrift's compact protocol.

The schema stands at the front of a footer, so nothing behind it is looked at, however many row groups there are. What
a change does not touch keeps its bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

TRUE: Final = 1
FALSE: Final = 2
BYTE: Final = 3
I32: Final = 5
I64: Final = 6
DOUBLE: Final = 7
BINARY: Final = 8
LIST: Final = 9
SET: Final = 10
MAP: Final = 11
STRUCT: Final = 12
_VARINTS: Final = frozenset({4, I32, I64})
_DEEPEST = 16
_LONG_LIST = 15

Fields: TypeAlias = "dict[int, tuple[int, bytes]]"
"""The fields of a struct by number: the kind of each, and the bytes of its value."""


@dataclass(slots=True)
class Schema:
    """The elements of a footer's schema, root first, and the bytes before and after them."""

    before: bytes
    elements: list[tuple[bytes, Fields]]
    after: bytes

    def encode(self) -> bytes:
        """The footer."""
        return self.before + b"".join(data for data, _ in self.elements) + self.after


def parse_schema(footer: bytes) -> Schema:
    """The schema of a footer (``FileMetaData``). Raises ``ValueError`` where it is not built as a footer is."""
    try:
        return _parse_schema(footer)
    except IndexError:
        raise ValueError("the footer ends too early") from None


def _parse_schema(footer: bytes) -> Schema:
    # The version, which every writer writes, and then the list of elements.
    if footer[0] != 0x10 | I32:
        raise ValueError("the footer does not begin with a version")
    at = _skip_varint(footer, 1)
    if footer[at] != 0x10 | LIST or footer[at + 1] & 0x0F != STRUCT:
        raise ValueError("the footer has no schema")
    count, at = footer[at + 1] >> 4, at + 2
    if count == _LONG_LIST:
        count, at = read_varint(footer, at)
    start = at
    elements = []
    for _ in range(count):
        fields, end = read_struct(footer, at)
        elements.append((footer[at:end], fields))
        at = end
    return Schema(footer[:start], elements, footer[at:])


def read_struct(data: bytes, at: int) -> tuple[Fields, int]:
    """The fields of the struct at a place, and where it ends. Raises ``IndexError`` or ``ValueError``."""
    fields: Fields = {}
    number = 0
    while head := data[at]:
        step, kind = head >> 4, head & 0x0F
        at += 1
        if step:
            number += step
        else:
            encoded, at = read_varint(data, at)
            number = _unzigzag(encoded)
        start = at
        at = _skip(data, at, kind, 0)
        fields[number] = kind, data[start:at]
    return fields, at + 1


def write_struct(fields: Fields) -> bytes:
    """The bytes of a struct."""
    parts = []
    last = 0
    for number in sorted(fields):
        kind, data = fields[number]
        step = number - last
        parts += [bytes([step << 4 | kind]) if step < 16 else bytes([kind]) + write_varint(number << 1), data]
        last = number
    return b"".join(parts) + b"\0"


def read_int(data: bytes) -> int:
    """An integer of any width as it stands in a field."""
    return _unzigzag(read_varint(data, 0)[0])


def write_int(value: int) -> bytes:
    """An integer as it stands in a field."""
    return write_varint((value << 1) ^ (value >> 63))


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number without sign, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number in the footer is too long")


def write_varint(value: int) -> bytes:
    """The bytes of a number without sign."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _unzigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _skip_varint(data: bytes, at: int) -> int:
    while data[at] >= 0x80:
        at += 1
    return at + 1


def _skip(data: bytes, at: int, kind: int, depth: int) -> int:
    """Where a value ends."""
    if kind in _VARINTS:
        return _skip_varint(data, at)
    if kind == BINARY:
        length, at = read_varint(data, at)
        if at + length >= len(data):
            raise IndexError
        return at + length
    if kind in (TRUE, FALSE):
        return at
    if kind == BYTE:
        return at + 1
    if kind == DOUBLE:
        return at + 8
    if kind != STRUCT or depth == _DEEPEST:
        raise ValueError(f"the schema in the footer holds a value of kind {kind}")
    while head := data[at]:
        at += 1
        if not head >> 4:
            at = _skip_varint(data, at)
        at = _skip(data, at, head & 0x0F, depth + 1)
    return at + 1

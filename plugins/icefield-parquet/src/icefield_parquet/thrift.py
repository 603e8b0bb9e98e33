"""Thrift's compact protocol, as footers and page headers use it: the one reader and writer of this plugin.

The schema is at the front of a footer, so ``parse_schema`` reads nothing after it, at any number of row groups.
Unchanged parts keep their bytes. All functions that read raise ``IndexError`` where the data end too early and
``ValueError`` where they are not Thrift, unless documented otherwise.
"""

from __future__ import annotations

from collections.abc import Container
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
UUID: Final = 13
_VARINTS: Final = frozenset({4, I32, I64})
_BOOLS: Final = frozenset({TRUE, FALSE})
_WIDTHS: Final = {BYTE: 1, DOUBLE: 8, UUID: 16}
_DEEPEST: Final = 64
_LONG_LIST = 15

MOST_ELEMENTS: Final = 100_000
"""The most elements of a schema: columns, and the groups around them."""

MOST_LEVELS: Final = 400
"""The most levels of a schema. A list takes three of them. pyarrow 24 overflows its stack at some ten thousand."""

_CHILDREN: Final = 5

Fields: TypeAlias = "dict[int, tuple[int, bytes]]"
"""The fields of a struct by number: the kind of each, and the bytes of its value."""


class RefusedSchema(ValueError):
    """A schema that pyarrow must not read: it is too large or too deep, or a number of children is negative."""


@dataclass(slots=True)
class FooterSchema:
    """The elements of a footer's schema, root first, and the bytes before and after them."""

    before: bytes
    elements: list[tuple[bytes, Fields]]
    after: bytes

    def encode(self) -> bytes:
        """The footer."""
        return self.before + b"".join(data for data, _ in self.elements) + self.after


def parse_schema(footer: bytes) -> FooterSchema:
    """The schema of a footer (``FileMetaData``). Raises ``ValueError`` for bytes without the structure of a footer."""
    try:
        return _parse_schema(footer)
    except IndexError:
        raise ValueError("the footer ends too early") from None


def _parse_schema(footer: bytes) -> FooterSchema:
    # A footer begins with the version, which every writer writes, and the list of schema elements.
    if footer[0] != 0x10 | I32:
        raise ValueError("the footer does not begin with a version")
    at = _skip_varint(footer, 1)
    if footer[at] != 0x10 | LIST or footer[at + 1] & 0x0F != STRUCT:
        raise ValueError("the footer has no schema")
    count, at = footer[at + 1] >> 4, at + 2
    if count == _LONG_LIST:
        count, at = read_varint(footer, at)
    if count > MOST_ELEMENTS:
        raise RefusedSchema(f"a schema of {count} elements, where {MOST_ELEMENTS} are the most")
    start = at
    elements = []
    left: list[int] = []  # for each open group, the children that follow
    for _ in range(count):
        fields, end = read_struct(footer, at)
        elements.append((footer[at:end], fields))
        at = end
        while left and not left[-1]:
            left.pop()
        if left:
            left[-1] -= 1
        children = read_int(fields[_CHILDREN][1]) if _CHILDREN in fields else 0
        if children < 0:
            raise RefusedSchema(f"a group of {children} columns")
        left.append(children)
        if len(left) > MOST_LEVELS:
            raise RefusedSchema(f"a schema of more than {MOST_LEVELS} levels")
    return FooterSchema(footer[:start], elements, footer[at:])


def read_struct(data: bytes, at: int) -> tuple[Fields, int]:
    """The fields of the struct at a place, and where it ends. Raises ``IndexError`` or ``ValueError``."""
    fields: Fields = {}
    number = 0
    while True:
        kind, number, at = read_field(data, at, number)
        if not kind:
            return fields, at
        start = at
        at = skip(data, at, kind)
        fields[number] = kind, data[start:at]


def read_i32s(data: bytes, at: int, wanted: Container[int]) -> tuple[dict[int, int], int]:
    """The wanted 32-bit integers of a struct by field number, and the position after the struct.

    For speed, one loop also skips all nested fields: a file has very many page headers and column chunks.
    """
    found: dict[int, int] = {}
    number = depth = 0
    while True:
        head = data[at]
        kind = head & 0x0F
        if not kind:  # the end of the struct, or of one in it
            at += 1
            if not depth:
                return found, at
            depth -= 1
            continue
        if depth:
            at = at + 1 if head > 0x0F else read_varint(data, at + 1)[1]
        else:
            _, number, at = read_field(data, at, number)
        if kind in _VARINTS:
            start = at
            while data[at] >= 0x80:
                at += 1
            at += 1
            if kind == I32 and not depth and number in wanted:
                found[number] = read_i32(data[start:at])
        elif kind == STRUCT:
            depth += 1
            if depth > _DEEPEST:
                raise ValueError("a value that is nested too deeply")
        else:
            at = skip(data, at, kind)


def read_field(data: bytes, at: int, last: int) -> tuple[int, int, int]:
    """The kind of the next field (0 where the struct ends), its number, and where its value is."""
    head = data[at]
    kind = head & 0x0F
    step = head >> 4
    if step or not kind:
        return kind, last + step, at + 1
    value, at = read_varint(data, at + 1)
    # A field's number has 16 bits.
    return kind, (_unzigzag(value) + 0x8000 & 0xFFFF) - 0x8000, at


def read_list(data: bytes, at: int) -> tuple[int, int, int]:
    """The kind of a list's items, how many there are, and where the first is."""
    head = data[at]
    count = head >> 4
    if count < _LONG_LIST:
        return head & 0x0F, count, at + 1
    count, at = read_size(data, at + 1)
    return head & 0x0F, count, at


def read_size(data: bytes, at: int) -> tuple[int, int]:
    """A size, cut to 32 bits as pyarrow cuts it, and where it ends."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, at = read_varint(data, at)
    return value & 0xFFFFFFFF, at


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


def read_i32(data: bytes) -> int:
    """Read an integer of a field, truncated to 32 bits as pyarrow truncates longer integers."""
    return _unzigzag(read_varint(data, 0)[0] & 0xFFFFFFFF)


def write_int(value: int) -> bytes:
    """An integer as it stands in a field."""
    return write_varint((value << 1) ^ (value >> 63))


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number, and the position after it."""
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


def skip(data: bytes, at: int, kind: int, depth: int = 0) -> int:
    """Where the value of a field ends."""
    if kind in _VARINTS:
        while data[at] >= 0x80:
            at += 1
        return at + 1
    if kind == BINARY:
        size, at = read_size(data, at)
        if at + size >= len(data):
            raise IndexError
        return at + size
    if kind in _BOOLS:
        return at
    if kind in _WIDTHS:
        return at + _WIDTHS[kind]
    if depth > _DEEPEST:
        raise ValueError("a value that is nested too deeply")
    if kind == STRUCT:
        while head := data[at] & 0x0F:
            at = at + 1 if data[at] >> 4 else _skip_varint(data, at + 1)
            at = skip(data, at, head, depth + 1)
        return at + 1
    if kind in (LIST, SET):
        item, count, at = read_list(data, at)
        return _skip_items(data, at, count, (item,), depth)
    if kind == MAP:
        count, at = read_size(data, at)
        if not count:
            return at
        return _skip_items(data, at + 1, count, (data[at] >> 4, data[at] & 0x0F), depth)
    raise ValueError(f"a value of kind {kind}, which Thrift does not have")


def _skip_items(data: bytes, at: int, count: int, kinds: tuple[int, ...], depth: int) -> int:
    for _ in range(count):
        for kind in kinds:
            # Outside a field a truth value takes a byte.
            at = at + 1 if kind in _BOOLS else skip(data, at, kind, depth + 1)
        if at > len(data):
            raise IndexError
    return at

"""The statistics in a footer's bytes, looked at before the library decodes them.

The library decodes the statistics of a column chunk when Python first asks whether there are any. Where a minimum is
shorter than its type, or the chunk is of another type than its column, it throws, nothing catches that, and the
process ends. So the lengths are compared here, in a walk over the bytes that takes them for what the library does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

_I32, _BINARY, _LIST, _SET, _MAP, _STRUCT = 5, 8, 9, 10, 11, 12
_WIDTHS: Final = {3: 1, 7: 8, 13: 16}  # a byte, a double, a uuid
_BOOLS: Final = (1, 2)
_VARINTS: Final = (4, 5, 6)
_DEEPEST: Final = 64

# Fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData, and the bounds in Statistics.
_ROW_GROUPS, _COLUMNS, _META_DATA, _TYPE, _STATISTICS = 4, 1, 3, 1, 12
_BOUNDS: Final = frozenset({1, 2, 5, 6})

_TYPES: Final = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_WIDTH_OF: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}


def check_statistics(footer: bytes, schema: Any) -> None:
    """Raise ``ValueError`` where the statistics of a column chunk are not of its column's type.

    ``footer`` is what the library parsed ``schema`` from, and may be followed by other bytes.
    """
    columns = [schema.column(at) for at in range(len(schema))]
    expected = [(_TYPES.index(column.physical_type), _width(column)) for column in columns]
    try:
        _check_footer(footer, expected)
    except IndexError:
        raise ValueError("the statistics reach beyond the footer") from None


def _width(column: Any) -> int:
    kind = column.physical_type
    return int(column.length) if kind == "FIXED_LEN_BYTE_ARRAY" else _WIDTH_OF.get(kind, 0)


def _check_footer(data: bytes, expected: list[tuple[int, int]]) -> None:
    at = number = 0
    while True:
        kind, number, at = _field(data, at, number)
        if not kind:
            return
        if number == _ROW_GROUPS and kind == _LIST:
            count, at = _list_size(data, at)
            for _ in range(count):
                at = _check_row_group(data, at, expected)
        else:
            at = _skip(data, at, kind, 0)


def _check_row_group(data: bytes, at: int, expected: list[tuple[int, int]]) -> int:
    number = 0
    while True:
        kind, number, at = _field(data, at, number)
        if not kind:
            return at
        if number == _COLUMNS and kind == _LIST:
            count, at = _list_size(data, at)
            if count != len(expected):
                raise ValueError("a row group with another number of columns than the schema")
            for physical, width in expected:
                at = _pass_usual(data, at, physical, width) or _check_chunk(data, at, physical, width)
        else:
            at = _skip(data, at, kind, 0)


def _pass_usual(data: bytes, at: int, physical: int, width: int) -> int:
    """Where a sound column chunk of the usual layout ends; 0 for any other."""
    head, rest = _usual(physical, width)
    found = head.match(data, at)
    if found is None:
        return 0
    at = found.end()
    if data[at] & 0x0F != _BINARY:
        return 0
    count, at = _list_size(data, at)
    for _ in range(count):
        size = data[at]
        if size > 0x7F:
            return 0
        at += size + 1
    found = rest.match(data, at)
    return 0 if found is None else found.end()


def _check_chunk(data: bytes, at: int, physical: int, width: int) -> int:
    number = 0
    while True:
        kind, number, at = _field(data, at, number)
        if not kind:
            return at
        if number == _META_DATA and kind == _STRUCT:
            at = _check_meta_data(data, at, physical, width)
        else:
            at = _skip(data, at, kind, 0)


def _check_meta_data(data: bytes, at: int, physical: int, width: int) -> int:
    number = 0
    while True:
        kind, number, at = _field(data, at, number)
        if not kind:
            return at
        if number == _STATISTICS and kind == _STRUCT:
            at = _check_bounds(data, at, width)
        elif number == _TYPE and kind == _I32:
            value, at = _varint(data, at)
            if value != physical << 1:
                raise ValueError("a column chunk of another type than its column")
        else:
            at = _skip(data, at, kind, 0)


def _check_bounds(data: bytes, at: int, width: int) -> int:
    number = 0
    while True:
        kind, number, at = _field(data, at, number)
        if not kind:
            return at
        if number in _BOUNDS and kind == _BINARY:
            size, at = _varint(data, at)
            if size < width:
                raise ValueError(f"a bound of {size} bytes where values have {width}")
            at += size
        else:
            at = _skip(data, at, kind, 0)


@lru_cache(maxsize=64)
def _usual(physical: int, width: int) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """A sound column chunk before and behind its path, as writers usually lay it out.

    An expression passes it ten times as fast. Fields come in order, with the statistics at their place, and texts are
    shorter than 128 bytes.
    """
    head = rb"\x26%b\x1c\x15" % NUMBER + re.escape(bytes([physical << 1])) + rb"\x19" + _lists(b"\x05", NUMBER)
    bound = re.escape(bytes([width])) + rb"[\s\S]{%d}" % width if width else TEXT
    statistics = rb"(?:[\x18\x28\x38\x48\x58\x68]%b|%b)*+\x00" % (bound, SCALAR)
    return re.compile(head + rb"\x19"), re.compile(_UNTIL_STATISTICS + statistics + _BEHIND_STATISTICS)


def _lists(kind: bytes, item: bytes) -> bytes:
    """Lists of up to 14 items of a kind."""
    heads = ((count, re.escape(bytes([count << 4 | kind[0]]))) for count in range(1, 15))
    return b"(?:" + b"|".join(b"%b%b{%d}" % (head, item, count) for count, head in heads) + b")"


NUMBER: Final = rb"(?:[\x80-\xff]{0,9}[\x00-\x7f])"
TEXT: Final = b"(?:" + b"|".join(re.escape(bytes([n])) + rb"[\s\S]{%d}" % n for n in range(128)) + b")"
SCALAR: Final = rb"(?:[\x15\x16\x25\x26\x35\x36\x45\x46]" + NUMBER + rb"|[\x11\x12\x21\x22])"
_UNTIL_STATISTICS: Final = rb"\x15%b\x16%b\x16%b\x16%b\x26%b" % (
    (NUMBER,) * 5
) + rb"(?:\x3c|\x16%b(?:\x2c|\x16%b\x1c)|\x26%b\x1c)" % ((NUMBER,) * 3)
_ENCODINGS: Final = rb"\x19" + _lists(b"\x0c", rb"(?:%b*+\x00)" % SCALAR)
_SIZES: Final = rb"[\x1c\x2c\x3c\x4c](?:%b|[\x19\x29\x39](?:\x06|%b))*+\x00" % (SCALAR, _lists(b"\x06", NUMBER))
_BEHIND_STATISTICS: Final = rb"(?:%b|%b|%b)*+\x00%b*+\x00" % (SCALAR, _ENCODINGS, _SIZES, SCALAR)


def _field(data: bytes, at: int, last: int) -> tuple[int, int, int]:
    """The kind of the next field (0 where the struct ends), its number, and where its value is."""
    head = data[at]
    kind = head & 0x0F
    step = head >> 4
    if step or not kind:
        return kind, last + step, at + 1
    value, at = _varint(data, at + 1)
    number = (value >> 1) ^ -(value & 1)
    return kind, (number + 0x8000 & 0xFFFF) - 0x8000, at


def _list_size(data: bytes, at: int) -> tuple[int, int]:
    size = data[at] >> 4
    return (size, at + 1) if size < 15 else _varint(data, at + 1)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number without sign, cut to 32 bits as the library cuts it, and where it ends."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value = shift = 0
    while byte >= 0x80:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        byte = data[at]
    return (value | byte << shift) & 0xFFFFFFFF, at + 1


def _skip(data: bytes, at: int, kind: int, depth: int) -> int:
    """Where the value of a field ends."""
    if kind in _VARINTS:
        while data[at] >= 0x80:
            at += 1
        return at + 1
    if kind == _BINARY:
        size, at = _varint(data, at)
        return at + size
    if kind in _BOOLS:
        return at
    if kind in _WIDTHS:
        return at + _WIDTHS[kind]
    if depth > _DEEPEST:
        raise ValueError("a footer that is nested too deeply")
    if kind == _STRUCT:
        while head := data[at] & 0x0F:
            at = at + 1 if data[at] >> 4 else _varint(data, at + 1)[1]
            at = _skip(data, at, head, depth + 1)
        return at + 1
    if kind in (_LIST, _SET):
        item = data[at] & 0x0F
        size, at = _list_size(data, at)
        return _skip_items(data, at, size, (item,), depth)
    if kind == _MAP:
        size, at = _varint(data, at)
        if not size:
            return at
        return _skip_items(data, at + 1, size, (data[at] >> 4, data[at] & 0x0F), depth)
    raise ValueError(f"a value of kind {kind} in the footer")


def _skip_items(data: bytes, at: int, count: int, kinds: tuple[int, ...], depth: int) -> int:
    for _ in range(count):
        for kind in kinds:
            # Outside a field a truth value takes a byte.
            at = at + 1 if kind in _BOOLS else _skip(data, at, kind, depth + 1)
        if at > len(data):
            raise IndexError
    return at

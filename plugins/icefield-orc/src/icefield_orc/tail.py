"""The tail of an ORC file: postscript, footer and stripe statistics, parsed in Python.

So its depth, sizes and offsets are validated before the C++ library reads them, and stripes can be found by their
start.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from icefield.abc import InputFile
from icefield.errors import UnsupportedFeature

from icefield_orc.compression import NONE, unpack
from icefield_orc.protobuf import blob, check_counts, integer, integers, items

MAGIC = b"ORC"
_FIRST_READ = 16 << 10
_LARGEST_FOOTER = 64 << 20
_LARGEST_STATISTICS = 256 << 20
_DEFAULT_BLOCK = 256 << 10
_MOST_PARTS = 100_000
"""Of each kind: types, stripes, pairs of user metadata, column statistics."""

_PACKED_CHILDREN = 3 * _MOST_PARTS
"""Bytes that the numbers of a type's children may take where they are packed."""

DEEPEST = 100
"""How many types may be inside each other."""

_MOST_STATISTICS = 1_000_000
"""Of columns in stripes. More are not read, and no stripe is skipped by them."""

_MOST_ROWS_FOR_A_BYTE_BITS = 31
"""The most rows for each byte of a file, as a power of two: it bounds the batches of rows without columns."""

_OTHER_FIELDS = 16
"""Fields of a message of statistics that a later version of the format may add."""

_SHORT_TYPE = 64
"""The most bytes of a type that is cached, as the columns of a wide file repeat short types byte for byte."""

_ENCRYPTION = 10
"""The footer's field for encrypted columns; their unencrypted copies are masked as nulls or digests."""


@dataclass(frozen=True, slots=True)
class PostScript:
    """The last message of a file, which says how the others are stored.

    ``length`` is the size of the postscript itself, in bytes.

    ``sound_statistics`` is false for files of the earliest ORC writers, which got the bounds of strings wrong.
    """

    footer_length: int
    codec: int
    block_size: int
    statistics_length: int
    length: int
    sound_statistics: bool = True


@dataclass(frozen=True, slots=True)
class Stripe:
    """Where a stripe is, in bytes from the start of the file, and how many rows it holds."""

    start: int
    index_length: int
    data_length: int
    footer_length: int
    rows: int

    @property
    def length(self) -> int:
        return self.index_length + self.data_length + self.footer_length


@dataclass(frozen=True, slots=True)
class TypeEntry:
    """One type of the footer's list, which holds the tree of types in pre-order."""

    kind: int
    children: tuple[int, ...]
    names: tuple[str, ...]
    precision: int
    scale: int
    attributes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Tail:
    """The parsed tail of a file. ``statistics`` are the column statistics of the whole file, not yet decoded."""

    postscript: PostScript
    size: int
    rows: int
    stripes: list[Stripe]
    types: list[TypeEntry]
    metadata: dict[str, bytes]
    statistics: list[bytes]


def read_tail(source: InputFile, size: int) -> Tail:
    """Read the tail of a file of ``size`` bytes. Raises ``ValueError`` for an incomplete or foreign file."""
    first = _read(source, max(0, size - _FIRST_READ), size)
    postscript = read_postscript(first)
    end = size - 1 - postscript.length
    start = end - postscript.footer_length
    if start < 0:
        raise ValueError("the footer is longer than the file")
    packed = first[start - size :][: end - start] if size - start <= len(first) else _read(source, start, end)
    footer = unpack(packed[: end - start], postscript.codec, postscript.block_size, _LARGEST_FOOTER)
    return parse_footer(footer, postscript, size)


def read_stripe_statistics(source: InputFile, tail: Tail) -> list[list[bytes]]:
    """Read the statistics of each column for each stripe, not yet decoded; empty where the file has none.

    The result is also empty for so many statistics that reading them takes longer than they save.
    """
    postscript = tail.postscript
    end = tail.size - 1 - postscript.length - postscript.footer_length
    start = end - postscript.statistics_length
    if start < 0:
        raise ValueError("the stripe statistics are longer than the file")
    stripes, columns = len(tail.stripes), len(tail.types)
    if stripes * columns > _MOST_STATISTICS:
        return []
    packed = _read(source, start, end)
    data = unpack(packed, postscript.codec, postscript.block_size, _LARGEST_STATISTICS)
    found: list[list[bytes]] = []
    for number, value in islice(items(data, len(data)), stripes + _OTHER_FIELDS):
        if len(found) > stripes:
            raise ValueError("statistics of more stripes than there are")
        if number == 1:
            parts = islice(items(blob(value), len(data)), columns + _OTHER_FIELDS)
            found.append([blob(column) for inner, column in parts if inner == 1])
    return found


def read_postscript(end_of_file: bytes) -> PostScript:
    """The postscript, from the last bytes of a file."""
    length = end_of_file[-1] if end_of_file else 0
    message = end_of_file[-1 - length : -1]
    if length < len(MAGIC) or len(message) < length:
        raise ValueError("it does not end in an ORC postscript")
    fields = dict(items(message))
    if fields.get(8000, MAGIC) != MAGIC:
        raise ValueError("it does not end in an ORC postscript")
    footer, statistics = integer(fields.get(1, 0)), integer(fields.get(5, 0))
    if footer > _LARGEST_FOOTER or statistics > _LARGEST_STATISTICS:
        raise ValueError("the footer claims to be too long")
    codec, block = integer(fields.get(2, NONE)), integer(fields.get(3, _DEFAULT_BLOCK))
    return PostScript(footer, codec, block, statistics, length, integer(fields.get(6, 0)) > 0)


def _read(source: InputFile, start: int, end: int) -> bytes:
    data = source.read_at(start, end - start)
    if len(data) != end - start:
        raise ValueError("it is shorter than it should be")
    return data


def parse_footer(footer: bytes, postscript: PostScript, size: int) -> Tail:
    """Parse a footer. Raises ``ValueError`` for a damaged footer, ``UnsupportedFeature`` for encrypted columns."""
    tail = Tail(postscript, size, 0, [], [], {}, [])
    check_counts(footer, _MOST_PARTS, "a footer of")
    rows, types = 0, _Types(tail.types)
    for number, value in items(footer, len(footer)):
        if number == 3:
            tail.stripes.append(_stripe(blob(value)))
        elif number == 4:
            types.add(blob(value))
        elif number == 5:
            pair = dict(items(blob(value)))
            tail.metadata[blob(pair.get(1, b"")).decode("utf-8", "replace")] = blob(pair.get(2, b""))
        elif number == 6:
            rows = integer(value)
        elif number == 7:
            tail.statistics.append(blob(value))
        elif number == _ENCRYPTION:
            raise UnsupportedFeature("columns of this ORC file are encrypted, and others would be read in their place")
    return _checked(tail, rows)


def _checked(tail: Tail, rows: int) -> Tail:
    end = 0
    for stripe in tail.stripes:
        if stripe.start < end or stripe.start + stripe.length > tail.size:
            raise ValueError("a stripe is outside the file or inside another")
        end = stripe.start + stripe.length
    if sum(stripe.rows for stripe in tail.stripes) != rows:
        raise ValueError("the rows of its stripes do not add up")
    if rows > tail.size << _MOST_ROWS_FOR_A_BYTE_BITS:
        raise ValueError(f"{tail.size} bytes claim to be {rows} rows")
    return Tail(tail.postscript, tail.size, rows, tail.stripes, tail.types, tail.metadata, tail.statistics)


def _stripe(data: bytes) -> Stripe:
    fields = {number: integer(value) for number, value in items(data) if number <= 5}
    return Stripe(*(fields.get(number, 0) for number in (1, 2, 3, 4, 5)))


class _Types:
    """Reads types one by one, and stops at the first type that is too deep or not part of the tree."""

    def __init__(self, found: list[TypeEntry]) -> None:
        self._found = found
        self._children_left = [1]
        self._short: dict[bytes, TypeEntry] = {}

    def add(self, data: bytes) -> None:
        entry = self._short.get(data)
        if entry is None:
            entry = _type(data)
            if len(data) <= _SHORT_TYPE:
                self._short[data] = entry
        left = self._children_left
        while not left[-1]:
            left.pop()
            if not left:
                raise ValueError("types that no column has")
        left[-1] -= 1
        if entry.children:
            left.append(len(entry.children))
            if len(left) > DEEPEST + 2:
                raise ValueError("its types are no tree, or one that is too deep")
        self._found.append(entry)


def _type(data: bytes) -> TypeEntry:
    single: dict[int, int] = {}
    children: list[int] = []
    names: list[str] = []
    attributes: dict[str, str] = {}
    if len(data) > _MOST_PARTS:
        check_counts(data, _MOST_PARTS, "a type of")
    for number, value in items(data, len(data)):
        if number == 2:
            if isinstance(value, bytes) and len(value) > _PACKED_CHILDREN:
                raise ValueError(f"a type of more than {_MOST_PARTS} children")
            children += integers(value)
        elif number == 3:
            names.append(blob(value).decode("utf-8"))
        elif number == 7:
            pair = dict(items(blob(value)))
            key, string = (blob(pair.get(part, b"")).decode("utf-8", "replace") for part in (1, 2))
            attributes[key] = string
        else:
            single[number] = integer(value)
    kind, precision, scale = (single.get(number, 0) for number in (1, 5, 6))
    return TypeEntry(kind, tuple(children), tuple(names), precision, scale, attributes)

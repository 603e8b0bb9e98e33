"""The pages of a column chunk, as their headers describe them, for the guards that compare page sizes.

A chunk has thousands of pages. Their headers differ in a few numbers and in the bytes of their statistics. So a header
is parsed once for each shape: the bytes that all headers of the shape share, and the positions of its numbers. One
comparison of integers shows that a header has a known shape.

For example, the header ``15 00 | 15 C8 01 | 15 64 | ... 00`` (page type 0, 100 bytes unpacked, 50 packed) has the mask
``FF FF | FF 81 80 | FF 81 | ... FF``: in each byte of a number only the continuation bit counts, and in the first byte
also the sign bit. ``15 00 | 15 90 03 | 15 66 | ... 00`` is of that shape.

The guards ``inflation``, ``expansion``, ``prefixes`` and ``repeated_entries`` use it. Their reproducers justify this
module, which may go with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from icefield.abc import InputFile

from icefield_parquet.thrift import BINARY, I32, I64, STRUCT, read_field, read_size, skip

DATA, DICTIONARY, DATA_V2 = 0, 2, 3
"""Types of pages."""

# Fields of a page header, then fields of the nested header for the page's type.
_TYPE, _UNPACKED, _PACKED = (1,), (2,), (3,)
_VALUES: Final = {DATA: (5, 1), DICTIONARY: (7, 1), DATA_V2: (8, 1)}
_ENCODING: Final = {DATA: (5, 2), DICTIONARY: (7, 2), DATA_V2: (8, 4)}

_MASK_OF: Final = dict.fromkeys((_TYPE, *_ENCODING.values()), b"\xff") | {_UNPACKED: b"\x81", _PACKED: b"\x81"}
"""The bits of a number's first byte that a shape fixes: all, or the sign and the bit for a following byte."""

_DEPTH: Final = 3
"""A page header contains the header of its type, which contains statistics."""

_WINDOWS: Final = (256, 4 << 10, 64 << 10, 1 << 20, 16 << 20)
"""How many bytes are read for a header, until it fits. The last is the longest header that pyarrow reads."""

_KEPT: Final = 512
_ALIKE: Final = 16
"""The most cached shapes: keys, and shapes of each key."""

_KEY: Final = int.from_bytes(b"\xff\xff\xff" + b"\x80" * 13, "little")
"""The type of a page, and how many bytes its sizes take: statistics begin behind these sixteen bytes."""

_LONGEST_NUMBER: Final = 5
"""Bytes of 32 bits: of a number that is written with more, pyarrow takes the lowest."""

_Path: TypeAlias = "tuple[int, ...]"
"""The numbers of the fields that lead to one."""

_Bits: TypeAlias = "tuple[int, int]"
"""The shift and the mask that extract a number from the integer of a header's bytes."""


@dataclass(frozen=True, slots=True)
class _HeaderShape:
    """The shape of headers. ``mask`` and ``bytes`` are little-endian integers of all bytes of the header."""

    mask: int
    bytes: int
    length: int
    kind: int
    encoding: int
    unpacked: _Bits
    packed: _Bits
    values: _Bits


class ColumnPage(NamedTuple):
    """A page, as its header describes it: the header's start, and the unpacked and packed size of the page.

    ``bytes`` is the little-endian integer of the header's bytes and some bytes after it.
    """

    place: int
    unpacked: int
    packed: int
    shape: _HeaderShape
    bytes: int

    @property
    def header(self) -> int:
        """How long the header is."""
        return self.shape.length

    @property
    def body(self) -> int:
        """Where the bytes of the page begin."""
        return self.place + self.shape.length

    @property
    def kind(self) -> int:
        """The type of the page; -1 where the header has none."""
        return self.shape.kind

    @property
    def encoding(self) -> int:
        """The encoding of the page's values; -1 where the header has none for that type of page."""
        return self.shape.encoding

    @property
    def values(self) -> int:
        """How many values the page holds, which may be negative; 0 where the header does not say it."""
        shift, mask = self.shape.values
        number = _number(self.bytes >> shift & mask)
        return number >> 1 ^ -(number & 1)


_SHAPES: Final[dict[int, tuple[_HeaderShape, ...]]] = {}
"""The last shapes that were seen, by the bits of ``_KEY``."""


def pages(source: InputFile, start: int, end: int) -> Iterator[ColumnPage]:
    """The pages that begin between two places of a file, as far as they are understood: the rest is left to pyarrow."""
    read, known = source.read_at, _SHAPES.get
    place = start
    while place < end:
        data = read(place, _WINDOWS[0])
        number = int.from_bytes(data, "little")
        for shape in known(number & _KEY, ()):
            if number & shape.mask == shape.bytes and shape.length <= len(data):
                break
        else:
            try:
                shape, number = _read_shape(source, place, data)
            except (IndexError, ValueError):
                return
        shift, mask = shape.unpacked
        unpacked = _number(number >> shift & mask) >> 1
        shift, mask = shape.packed
        packed = _number(number >> shift & mask) >> 1
        yield ColumnPage(place, unpacked, packed, shape, number)
        place += shape.length + packed


def _number(bits: int) -> int:
    """Decode an unsigned number of 32 bits from its bytes. The first byte has the lowest bits.

    For example, ``C8 01`` is ``1 1001000`` and ``0 0000001``: 0000001_1001000 is 200.
    """
    return bits & 0x7F | bits >> 1 & 0x3F80 | bits >> 2 & 0x1FC000 | bits >> 3 & 0xFE00000 | bits >> 4 & 0xF0000000


def _read_shape(source: InputFile, place: int, data: bytes) -> tuple[_HeaderShape, int]:
    """Return the shape of the header at ``place`` and its bytes as an integer; ``data`` is its first bytes."""
    for window in _WINDOWS[1:]:
        try:
            return _shape_of(data)
        except IndexError:
            data = source.read_at(place, window)
    return _shape_of(data)


def _shape_of(data: bytes) -> tuple[_HeaderShape, int]:
    """Parse the header at the start of the data; remember and return its shape, with the integer of its bytes."""
    places: dict[_Path, _Bits] = {}
    mask = bytearray(b"\xff" * len(data))
    length = _mark(data, 0, (), mask, places)
    number, bits = (int.from_bytes(part[:length], "little") for part in (data, mask))

    def value(path: _Path) -> int:
        shift, mask = places.get(path, _NOWHERE)
        found = _number(number >> shift & mask)
        return found >> 1 ^ -(found & 1) if mask else -1

    if value(_UNPACKED) < 0 or value(_PACKED) < 0:
        raise ValueError("a page header without a size, or with one that is negative")
    kind = value(_TYPE)
    encoding = value(_ENCODING.get(kind, ()))
    values = places.get(_VALUES.get(kind, ()), _NOWHERE)
    shape = _HeaderShape(bits, number & bits, length, kind, encoding, places[_UNPACKED], places[_PACKED], values)
    if length <= _WINDOWS[0]:
        if len(_SHAPES) >= _KEPT:
            _SHAPES.clear()
        _SHAPES[number & _KEY] = (shape, *_SHAPES.get(number & _KEY, ())[: _ALIKE - 1])
    return shape, number


_NOWHERE: Final[_Bits] = (0, 0)


def _mark(data: bytes, at: int, path: _Path, mask: bytearray, places: dict[_Path, _Bits]) -> int:
    """Find the numbers of a struct, and clear the mask of bits that may differ. Returns the end of the struct."""
    number = 0
    while True:
        kind, number, at = read_field(data, at, number)
        if not kind:
            return at
        start, field = at, (*path, number)
        if kind == STRUCT and len(field) < _DEPTH:
            at = _mark(data, at, field, mask, places)
            continue
        at = skip(data, at, kind)
        if kind in (I32, I64):
            first = _MASK_OF.get(field, b"\x80")
            mask[start:at] = first + (first if first == b"\xff" else b"\x80") * (at - start - 1)
            if kind == I32:
                places[field] = 8 * start, (1 << 8 * min(at - start, _LONGEST_NUMBER)) - 1
        elif kind == BINARY:
            _, start = read_size(data, start)
            mask[start:at] = bytes(at - start)

"""How many values lists and maps may hold, which a few bytes can claim any number of.

A row of a flat column is one value, and so many are read as there are rows. What one row of a list holds is known from
its pages alone: a page of thirty bytes can hold a list of two thousand million nulls.

Reproducer: ``tests/guard/test_expansion.py`` makes such files; pyarrow takes memory for as many values as the page
claims. https://github.com/apache/arrow/issues/49955 is the same defect in the delta decoders. ``check_claim`` and
``check_pages`` may go when pyarrow bounds what it takes for a page by the bytes of the page, or by a limit that it is
given. ``dictionary_size`` stays: no interface of pyarrow gives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from icefield.abc import InputFile

from icefield_parquet.thrift import I32, STRUCT, Fields, read_int, read_struct

_MOST_BYTES: Final = 2 << 30
_MOST_FOR_A_BYTE: Final = 1 << 10
"""Values that a byte of the file stands for: more do not come about by themselves in columns of any size."""

_LEVELS: Final = 4  # bytes, of both kinds together

# Fields of a page header, and the number of values in those inside it.
_COMPRESSED, _DATA, _DICTIONARY, _DATA_V2, _VALUES = 3, 5, 7, 8, 1
_ENCODING: Final = {_DATA: 2, _DATA_V2: 4}
_NUMBERS: Final = frozenset((2, 8))
"""The encodings of a page of numbers in a dictionary, of old and new."""

_USUAL_HEADER: Final = 256
_LONGEST_HEADER: Final = 64 << 10


class TooMany(Exception):
    """A column chunk would take too much memory. The message says how much."""


def check_claim(chunk: Any, width: int) -> None:
    """Raise ``TooMany`` where few bytes claim very many values of a list."""
    size = chunk.num_values * (width + _LEVELS)
    if size > _MOST_BYTES and chunk.num_values > chunk.total_compressed_size * _MOST_FOR_A_BYTE:
        raise TooMany(f"{chunk.total_compressed_size} bytes claim {chunk.num_values} values, of {size >> 30} GiB")


def check_pages(source: InputFile, chunk: Any) -> None:
    """Raise ``ValueError`` where the pages of a list hold more values than its column chunk claims.

    What is not understood is left to pyarrow.
    """
    place = chunk.data_page_offset
    if chunk.dictionary_page_offset and 0 < chunk.dictionary_page_offset < place:
        place = chunk.dictionary_page_offset
    end = place + chunk.total_compressed_size
    try:
        seen = sum(values for values, _ in _pages(source, place, end, chunk.num_values))
    except (IndexError, ValueError):
        return
    if seen > chunk.num_values:
        raise ValueError(f"a page with more values than the {chunk.num_values} of its column chunk")


def dictionary_size(source: InputFile, chunk: Any) -> int | None:
    """How many values the dictionary of a column chunk has; None where not all of its pages are numbers in one."""
    place = chunk.dictionary_page_offset
    if chunk.num_values == 0:
        return 0
    if not place or place < 0:
        return None
    end = place + chunk.total_compressed_size
    try:
        header, start = page_header(source, place)
        found = page_int(read_struct(header[_DICTIONARY][1], 0)[0], _VALUES)
        place += start + counted(page_int(header, _COMPRESSED))
        if any(encoding not in _NUMBERS for _, encoding in _pages(source, place, end, chunk.num_values)):
            return None
    except (LookupError, ValueError):
        return None
    return found


def _pages(source: InputFile, place: int, end: int, count: int) -> Iterator[tuple[int, int]]:
    """How many values each page from a place on holds, and in what encoding, until there are ``count`` of them."""
    seen = 0
    while seen < count and place < end:
        values, size, encoding = _page(source, place)
        yield values, encoding
        seen += values
        place += size


def _page(source: InputFile, place: int) -> tuple[int, int, int]:
    """How many values the page at a place holds, its size, and the encoding of its values."""
    header, size = page_header(source, place)
    size += counted(page_int(header, _COMPRESSED))
    kind = next((number for number in _ENCODING if number in header), None)
    if kind is None or header[kind][0] != STRUCT:
        return 0, size, -1
    inner = read_struct(header[kind][1], 0)[0]
    return counted(page_int(inner, _VALUES)), size, page_int(inner, _ENCODING[kind])


def page_header(source: InputFile, place: int) -> tuple[Fields, int]:
    """The header of the page at a place, and its length."""
    try:
        return read_struct(source.read_at(place, _USUAL_HEADER), 0)
    except IndexError:
        return read_struct(source.read_at(place, _LONGEST_HEADER), 0)


def counted(number: int) -> int:
    """A number that cannot be negative: a page that led back to itself would never end."""
    if number < 0:
        raise ValueError("a page of a negative size")
    return number


def page_int(fields: Fields, number: int) -> int:
    """A number of a page header. Raises ``ValueError`` where it is not there."""
    kind, data = fields.get(number, (0, b""))
    if kind != I32:
        raise ValueError("a page header without a number that it must have")
    return read_int(data)

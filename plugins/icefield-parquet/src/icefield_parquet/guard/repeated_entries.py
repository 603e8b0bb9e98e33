"""How long the strings of a dictionary are, which a few bytes can repeat any number of times.

A dictionary of one string of a megabyte and a page of thirty bytes are a million rows of a terabyte: pyarrow takes
memory for all rows that it is asked for. So the longest entry is found first, and as many rows are asked for as fit.
A dictionary page holds what a page of plain values holds: as such, pyarrow reads its lengths.

Reproducer: ``tests/guard/test_repeated_entries.py`` makes such files; no upstream issue was found. This guard may go
when pyarrow ends a batch at a number of bytes that it is given.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from icefield.abc import InputFile

from icefield_parquet.guard.expansion import counted, page_header, page_int
from icefield_parquet.thrift import BINARY, I32, I64, LIST, STRUCT, Fields, read_struct, write_int, write_struct

MOST_BYTES: Final = 1 << 30
"""What strings may take that are decoded together, if all of them were as long as the longest."""

BYTES_AT_ONCE: Final = 256 << 20
"""Rows are asked for until they take so much, where ``MOST_BYTES`` would be passed."""

_FREE_PART: Final = 16
"""Strings that cannot take more than this part of ``MOST_BYTES`` are not measured."""

_TYPE, _UNPACKED, _PACKED, _DICTIONARY, _VALUES = 1, 2, 3, 7, 1  # fields of a page header
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_DATA_PAGE_HEADER: Final = 5
_LENGTH: Final = 4
"""Bytes before each string of a page, which hold its length."""

_MAGIC: Final = b"PAR1"
_BYTE_ARRAY: Final = 6
_CODECS: Final = {"SNAPPY": "snappy", "GZIP": "gzip", "BROTLI": "brotli", "ZSTD": "zstd", "LZ4": "lz4_raw"}


@dataclass(frozen=True, slots=True)
class StringChunk:
    """A column chunk of strings: where it lies, in bytes from the start of the file, its codec, values and rows."""

    start: int
    end: int
    codec: str
    values: int
    rows: int


def string_chunk(chunk: Any, rows: int) -> StringChunk:
    """The strings of a column chunk."""
    start = chunk.data_page_offset
    if chunk.dictionary_page_offset and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    return StringChunk(start, start + chunk.total_compressed_size, chunk.compression, chunk.num_values, rows)


def row_bytes(source: InputFile, strings: StringChunk) -> int:
    """What a row takes whose strings are all as long as the longest of the dictionary, or a little more; 0 without one.

    What is not understood is left to pyarrow.
    """
    return _longest_entry(source, strings) * -(-strings.values // max(1, strings.rows))


def fewer_rows(total: int, rows: int) -> int | None:
    """How many rows are asked for at once where so many would take too much; ``total`` is what one of them takes."""
    return max(1, BYTES_AT_ONCE // total) if total * rows > MOST_BYTES else None


def _longest_entry(source: InputFile, strings: StringChunk) -> int:
    free = MOST_BYTES // max(1, strings.values) // _FREE_PART
    place = strings.start
    while place < strings.end:
        try:
            header, size = page_header(source, place)
            packed = counted(page_int(header, _PACKED))
            if page_int(header, _TYPE) == _DICTIONARY_PAGE:
                return _longest(source, place + size, header, strings.codec, free)
        except (LookupError, ValueError):
            return 0
        place += size + packed
    return 0


def _longest(source: InputFile, place: int, header: Fields, codec: str, free: int) -> int:
    unpacked, packed = counted(page_int(header, _UNPACKED)), page_int(header, _PACKED)
    count = counted(page_int(read_struct(header[_DICTIONARY][1], 0)[0], _VALUES))
    most = max(0, unpacked - _LENGTH * count)
    if most <= free or count == 1:
        return most
    data = source.read_at(place, packed)
    try:
        if codec != "UNCOMPRESSED":
            data = pa.decompress(data, unpacked, codec=_CODECS[codec], asbytes=True)
        return _longest_of(data, count)
    except (KeyError, ValueError, OSError, pa.ArrowException):
        return most


def _longest_of(page: bytes, count: int) -> int:
    """The longest of so many strings that a page holds, which is made the only page of a file."""
    header = {_TYPE: _i32(_DATA_PAGE), _UNPACKED: _i32(len(page)), _PACKED: _i32(len(page))}
    page = write_struct({**header, _DATA_PAGE_HEADER: _struct(_i32(count), _i32(0), _i32(3), _i32(3))}) + page
    places = {5: _i64(count), 6: _i64(len(page)), 7: _i64(len(page)), 9: _i64(len(_MAGIC))}
    chunk = write_struct({1: _i32(_BYTE_ARRAY), 2: _list(I32, b"\0"), 3: _list(BINARY, b"\1t"), 4: _i32(0), **places})
    group = {1: _list(STRUCT, write_struct({2: _i64(len(_MAGIC)), 3: (STRUCT, chunk)})), 2: _i64(len(page))}
    footer = write_struct({**_SCHEMA, 3: _i64(count), 4: _list(STRUCT, write_struct({**group, 3: _i64(count)}))})
    file = b"".join([_MAGIC, page, footer, struct.pack("<I", len(footer)), _MAGIC])
    lengths = pc.binary_length(pq.ParquetFile(pa.BufferReader(file)).read().column(0))
    if len(lengths) != count:
        raise ValueError("a dictionary with fewer entries than it says")
    return int(pc.max(lengths).as_py() or 0)


def _i32(value: int) -> tuple[int, bytes]:
    return I32, write_int(value)


def _i64(value: int) -> tuple[int, bytes]:
    return I64, write_int(value)


def _struct(*values: tuple[int, bytes]) -> tuple[int, bytes]:
    return STRUCT, write_struct(dict(enumerate(values, 1)))


def _list(kind: int, *values: bytes) -> tuple[int, bytes]:
    return LIST, bytes([len(values) << 4 | kind]) + b"".join(values)


_SCHEMA: Final[Fields] = {
    1: _i32(1),
    2: _list(
        STRUCT,
        write_struct({4: (BINARY, b"\6schema"), 5: _i32(1)}),
        write_struct({1: _i32(_BYTE_ARRAY), 3: _i32(0), 4: (BINARY, b"\1t")}),
    ),
}
"""The version and schema of a footer whose only column holds bytes, none of them null."""

"""How long the strings of a dictionary are, which a few bytes can repeat any number of times.

A dictionary of one string of a megabyte and a page of thirty bytes are a million rows of a terabyte: pyarrow takes
memory for all rows that it is asked for. So the longest entry is found first, and as many rows are asked for as fit.
A dictionary page holds what a page of plain values holds: as such, pyarrow reads its lengths. One row of a list can
repeat as much: where that may be, the column is read once with its strings left in the dictionary, and its rows are
measured.

Reproducer: ``tests/guard/test_repeated_entries.py`` makes such files; no upstream issue was found. This guard may go
when pyarrow ends a batch at a number of bytes that it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield.abc import InputFile

from icefield_parquet.guard.expansion import TooMany
from icefield_parquet.guard.one_page import decoded_page
from icefield_parquet.guard.pages import DICTIONARY, Page, pages
from icefield_parquet.guard.prefixes import ENCODING, Shared, shared
from icefield_parquet.row_groups import chunk_range

MOST_BYTES: Final = 1 << 30
"""What strings may take that are decoded together, if all of them were as long as the longest."""

BYTES_AT_ONCE: Final = 64 << 20
"""Rows are asked for until they take so much, where ``MOST_BYTES`` would be passed."""

_FREE_PART: Final = 16
"""Strings that cannot take more than this part of ``MOST_BYTES`` are not measured."""

_LENGTH: Final = 4
"""Bytes before each string of a page, which hold its length."""

_BYTE_ARRAY, _PLAIN = 6, 0
_MOST_TIMES: Final = 256
"""How many times their packed size strings of a list may take by their prefixes, beyond ``MOST_BYTES``."""

_CODECS: Final = {"SNAPPY": "snappy", "GZIP": "gzip", "BROTLI": "brotli", "ZSTD": "zstd", "LZ4": "lz4_raw"}


@dataclass(frozen=True, slots=True)
class StringChunk:
    """A column chunk of strings: where it is, in bytes from the start of the file, its codec, values and rows.

    ``group`` and ``column`` are its numbers in the footer; ``levels`` says how many kinds of levels its pages have,
    ``repeated`` that a row may have several of its values.
    """

    start: int
    end: int
    codec: str
    values: int
    rows: int
    group: int
    column: int
    levels: int
    repeated: bool


Measure = Callable[[InputFile, StringChunk], pa.ChunkedArray]
"""Reads a column chunk with its strings left in the dictionary."""


def string_chunk(footer: Any, group: int, column: int) -> StringChunk:
    """The strings of a column chunk."""
    row_group, described = footer.row_group(group), footer.schema.column(column)
    chunk = row_group.column(column)
    start, end = chunk_range(chunk)
    repeated = described.max_repetition_level > 0
    levels = repeated + (described.max_definition_level > 0)
    rows = row_group.num_rows
    return StringChunk(start, end, chunk.compression, chunk.num_values, rows, group, column, levels, repeated)


def row_bytes(source: InputFile, strings: StringChunk, measure: Measure) -> int:
    """What a row takes whose strings are all as long as they may be, or a little more; 0 where strings repeat nothing.

    What is not understood is left to pyarrow. Raises ``TooMany`` where one row alone takes too much.
    """
    longest, prefixes = _walk(source, strings)
    rows = max(1, strings.rows)
    if prefixes.together <= MOST_BYTES:
        total = -(-prefixes.together // rows)
    elif not strings.repeated:
        total = prefixes.longest
    elif prefixes.together > _MOST_TIMES * (strings.end - strings.start):
        raise TooMany(f"lists of {rows} rows whose strings repeat each other to {prefixes.together} bytes")
    else:
        total = MOST_BYTES
    if not strings.repeated:
        return max(longest, total)
    if longest * strings.values <= MOST_BYTES:
        return max(-(-longest * strings.values // rows), total)
    most = _longest_row(measure(source, strings))
    if most > MOST_BYTES:
        raise TooMany(f"a row whose lists repeat strings to {most} bytes, where {MOST_BYTES} are the most")
    return max(most, total)


def _longest_row(column: pa.ChunkedArray) -> int:
    return max((_most(chunk, np.arange(len(chunk) + 1, dtype=np.int64)) for chunk in column.chunks), default=0)


def _most(array: pa.Array, ends: np.ndarray[Any, Any]) -> int:
    """What the strings of a row take at most; ``ends`` are where the values of rows begin, and the last ones end."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        lengths = pc.binary_length(array.dictionary).cast(pa.int64()).fill_null(0)
        taken = np.asarray(lengths.take(array.indices).fill_null(0))
        totals = np.concatenate(([0], np.cumsum(taken)))[ends]
        return int((totals[1:] - totals[:-1]).max(initial=0))
    if pa.types.is_map(kind):
        ends = np.asarray(array.offsets).astype(np.int64)[ends]
        return max(_most(array.keys, ends), _most(array.items, ends))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _most(array.values, np.asarray(array.offsets).astype(np.int64)[ends])
    if pa.types.is_struct(kind):
        return max((_most(array.field(place), ends) for place in range(kind.num_fields)), default=0)
    return 0


def fewer_rows(total: int, rows: int) -> int | None:
    """How many rows are asked for at once where so many would take too much; ``total`` is what one of them takes."""
    return max(1, BYTES_AT_ONCE // total) if total * rows > MOST_BYTES else None


def _walk(source: InputFile, strings: StringChunk) -> tuple[int, Shared]:
    """The longest entry of the dictionary of a chunk, and what strings take that repeat the front of others."""
    free = MOST_BYTES // max(1, strings.values) // _FREE_PART
    entry, longest, together = 0, 0, 0
    for page in pages(source, strings.start, strings.end):
        if page.kind != DICTIONARY and (page.encoding != ENCODING or page.unpacked <= free):
            continue
        try:
            if page.kind == DICTIONARY:
                entry = max(entry, _longest(source, page, strings.codec, free))
            else:
                found = shared(source, page, _CODECS.get(strings.codec), strings.levels)
                longest, together = max(longest, found.longest), together + found.together
        except (LookupError, ValueError, OverflowError, OSError, pa.ArrowException):
            break
    return entry, Shared(longest, together)


def _longest(source: InputFile, page: Page, codec: str, free: int) -> int:
    most = max(0, page.unpacked - _LENGTH * page.values)
    if page.values < 0:
        raise ValueError("a dictionary of a negative size")
    if most <= free or page.values == 1:
        return most
    data = source.read_at(page.body, page.packed)
    try:
        if codec != "UNCOMPRESSED":
            data = pa.decompress(data, page.unpacked, codec=_CODECS[codec], asbytes=True)
        return _longest_of(data, page.values)
    except (KeyError, ValueError, OSError, pa.ArrowException):
        return most


def _longest_of(page: bytes, count: int) -> int:
    """The longest of so many strings that a page holds."""
    return int(pc.max(pc.binary_length(decoded_page(page, _BYTE_ARRAY, count, _PLAIN))).as_py() or 0)

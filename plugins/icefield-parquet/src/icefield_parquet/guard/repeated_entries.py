"""The lengths of dictionary entries: a few bytes can repeat a long entry any number of times.

A dictionary with one string of a megabyte and a page of thirty bytes can make a million rows, together a terabyte:
pyarrow allocates memory for all requested rows. So the longest entry is found first, and only as many rows are
requested as fit. A dictionary page has the form of a page of plain values, so pyarrow reads its lengths from a file of
one such page. A single row with a list can repeat an entry as often. A column with such lists is read once with its
strings left in the dictionary, and its rows are measured.

Reproducer: ``tests/guard/test_repeated_entries.py`` makes such files; no upstream issue was found. This guard may go
when pyarrow can limit a batch to a number of bytes.
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
from icefield_parquet.guard.pages import DICTIONARY, ColumnPage, pages
from icefield_parquet.guard.prefixes import ENCODING, Shared, shared
from icefield_parquet.row_groups import chunk_range

MOST_BYTES: Final = 1 << 30
"""The most bytes for strings that are decoded together, if all of them were as long as the longest."""

BYTES_AT_ONCE: Final = 64 << 20
"""The bytes of a batch of rows where all rows together would exceed ``MOST_BYTES``."""

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
    """Return an upper bound for the bytes of a row, with strings of the maximum length; 0 where strings repeat nothing.

    Pages that are not understood are left to pyarrow. Raises ``TooMany`` where one row alone takes too much.
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
    """Return the most bytes that the strings of a row take; ``ends`` are the offsets of the rows' values."""
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
    """Return a smaller batch size where ``rows`` rows of ``total`` bytes each take too much; None where they fit."""
    return max(1, BYTES_AT_ONCE // total) if total * rows > MOST_BYTES else None


def _walk(source: InputFile, strings: StringChunk) -> tuple[int, Shared]:
    """Return the longest dictionary entry of a chunk, and the size of strings that share prefixes."""
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


def _longest(source: InputFile, page: ColumnPage, codec: str, free: int) -> int:
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
    """Return the length of the longest of a page's ``count`` strings."""
    return int(pc.max(pc.binary_length(decoded_page(page, _BYTE_ARRAY, count, _PLAIN))).as_py() or 0)

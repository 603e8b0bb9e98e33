"""Limits on the values of lists and maps: a few bytes of a file can claim any number of them.

A flat column has one value a row, so the number of rows bounds its values. Only the pages of a list tell how many
values a row has: a page of thirty bytes can hold a list of two thousand million nulls.

Reproducer: ``tests/guard/test_expansion.py`` makes such files; pyarrow allocates memory for as many values as the page
claims. https://github.com/apache/arrow/issues/49955 is the same defect in the delta decoders. ``check_claim`` and
``check_pages`` may go when pyarrow bounds the memory for a page by the bytes of the page, or by a given limit.
``dictionary_size`` stays: no interface of pyarrow gives it.
"""

from __future__ import annotations

from typing import Any, Final

from icefield.abc import InputFile

from icefield_parquet.guard.pages import DATA, DATA_V2, DICTIONARY, pages
from icefield_parquet.row_groups import chunk_range

_MOST_BYTES: Final = 2 << 30
_MOST_FOR_A_BYTE: Final = 1 << 10
"""The most values for each byte of a large column chunk: honest columns of any size stay below this limit."""

_LEVELS: Final = 4  # bytes, of both kinds together

_DATA: Final = frozenset((DATA, DATA_V2))
_NUMBERS: Final = frozenset((2, 8))
"""The encodings of a page of numbers in a dictionary, of old and new."""


class TooMany(Exception):
    """A column chunk would take too much memory. The message says how much."""


def check_claim(chunk: Any, width: int) -> None:
    """Raise ``TooMany`` where few bytes claim very many values of a list."""
    size = chunk.num_values * (width + _LEVELS)
    if size > _MOST_BYTES and chunk.num_values > chunk.total_compressed_size * _MOST_FOR_A_BYTE:
        raise TooMany(f"{chunk.total_compressed_size} bytes claim {chunk.num_values} values, of {size >> 30} GiB")


def check_pages(source: InputFile, chunk: Any) -> None:
    """Raise ``ValueError`` where the pages of a list hold more values than its column chunk claims.

    Pages with unknown headers are left to pyarrow.
    """
    left = chunk.num_values
    for page in pages(source, *chunk_range(chunk)):
        if page.kind in _DATA:
            left -= page.values
            if page.values < 0 or left <= 0:
                break
    if left < 0:
        raise ValueError(f"a page with more values than the {chunk.num_values} of its column chunk")


def dictionary_size(source: InputFile, chunk: Any) -> int | None:
    """How many values the dictionary of a column chunk has; None unless it encodes all data pages."""
    left = chunk.num_values
    if left == 0:
        return 0
    start, end = chunk_range(chunk)
    if chunk.dictionary_page_offset != start:
        return None
    found = pages(source, start, end)
    first = next(found, None)
    if first is None or first.kind != DICTIONARY or first.values < 0:
        return None
    while left > 0:
        page = next(found, None)
        if page is None or page.kind not in _DATA or page.encoding not in _NUMBERS or page.values < 0:
            return None
        left -= page.values
    return first.values

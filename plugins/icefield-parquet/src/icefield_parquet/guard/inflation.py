"""Limits on the inflated size of the pages of a column chunk, checked before pyarrow inflates them.

A page of 60 KiB can inflate to two GiB, regardless of the size in the footer: pyarrow allocates the size in the
page's own header. So the headers are read first. Only ``gzip``, ``brotli`` and ``zstd`` are checked: Snappy, LZO and
LZ4 yield at most 255 bytes for one.

Reproducer: ``tests/guard/test_inflation.py`` makes such files, which take pyarrow gigabytes; no upstream issue was
found. This guard may go when pyarrow compares the size of pages with the size of their chunk, and limits both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from icefield.abc import InputFile

from icefield_parquet.guard.expansion import TooMany
from icefield_parquet.guard.pages import pages
from icefield_parquet.row_groups import chunk_range

_CODECS: Final = frozenset({"GZIP", "BROTLI", "ZSTD"})
_MOST_TIMES: Final = 256
"""The highest ratio of inflated to compressed size, for sizes beyond ``_FREE_PAGE`` and ``_FREE_CHUNK``."""

_FREE_PAGE: Final = 64 << 20
"""The inflated size, in bytes, that any page may have, at any ratio: writers aim at one MiB."""

_FREE_CHUNK: Final = 256 << 20
"""As ``_FREE_PAGE``, for a column chunk with values of variable width."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Where a column chunk is, in bytes from the start of the file, and how many bytes its pages are said to hold."""

    start: int
    end: int
    unpacked: int


def claim_of(chunk: Any, *, is_string: bool) -> Claim | None:
    """Return the claim of a column chunk; None if its codec cannot inflate a few bytes to very many.

    Raises ``TooMany`` where strings or bytes of any length would take very many times their compressed size.
    """
    if chunk.compression not in _CODECS:
        return None
    packed, unpacked = chunk.total_compressed_size, chunk.total_uncompressed_size
    if is_string and _is_too_much(unpacked, packed, _FREE_CHUNK):
        raise TooMany(f"{packed} bytes claim to hold {unpacked}, which is more than {_MOST_TIMES} times as many")
    start, end = chunk_range(chunk)
    return Claim(start, end, unpacked)


def check_inflation(source: InputFile, claim: Claim) -> None:
    """Raise ``ValueError`` where a page, or all pages together, inflate to more than they may.

    Pages with unknown headers are left to pyarrow.
    """
    left = claim.unpacked + _FREE_PAGE
    for _, unpacked, packed, _, _ in pages(source, claim.start, claim.end):
        if _is_too_much(unpacked, packed, _FREE_PAGE):
            raise ValueError(f"a page of {packed} bytes claims to hold {unpacked}")
        left -= unpacked
        if left < 0:
            raise ValueError(f"pages that hold more than the {claim.unpacked} bytes of their column chunk")


def _is_too_much(unpacked: int, packed: int, free: int) -> bool:
    return unpacked > free and unpacked > _MOST_TIMES * packed

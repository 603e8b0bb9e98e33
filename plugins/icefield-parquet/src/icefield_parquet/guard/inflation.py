"""How much the pages of a column chunk may inflate to, which is compared before pyarrow inflates them.

A page of 60 KiB can inflate to two GiB, whatever the footer says of its chunk: pyarrow takes memory for what the page's
own header claims. So the headers are read first. Snappy, LZO and LZ4 are left out, which yield at most 255 bytes for
one; ``gzip``, ``brotli`` and ``zstd`` are not.

Reproducer: ``tests/guard/test_inflation.py`` makes such files, which take pyarrow gigabytes; no upstream issue was
found. This guard may go when pyarrow compares pages with what their chunk claims, and has a limit for both.
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
"""How many times its packed size something may hold, beyond what is free."""

_FREE_PAGE: Final = 64 << 20
"""How large a page may be, in bytes, whatever its packed size: writers aim at one MiB."""

_FREE_CHUNK: Final = 256 << 20
"""As ``_FREE_PAGE``, of a column chunk whose values have no fixed width."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Where a column chunk is, in bytes from the start of the file, and how many bytes its pages are said to hold."""

    start: int
    end: int
    unpacked: int


def claim_of(chunk: Any, *, is_string: bool) -> Claim | None:
    """What a column chunk claims; None for one whose codec cannot inflate a few bytes to very many.

    Raises ``TooMany`` where strings or bytes of any length would take very many times their packed size.
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

    What is not understood is left to pyarrow.
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

"""The memory of strings that share a prefix with the string before them (``DELTA_BYTE_ARRAY``).

A page of a megabyte can hold one long string, and a million strings that repeat it without a byte of their own: a
terabyte. The page begins with the lengths of the prefixes: this guard writes them to a file of their own, and pyarrow
decodes them.

Reproducer: ``tests/guard/test_prefixes.py`` makes such files; pyarrow allocates memory for all requested rows.
https://github.com/apache/arrow/issues/49955 is the same defect. This guard may go when pyarrow can limit a batch to a
number of bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from icefield.abc import InputFile

from icefield_parquet.guard.one_page import decoded_page
from icefield_parquet.guard.pages import DATA_V2, ColumnPage
from icefield_parquet.thrift import FALSE, I32, Fields, read_i32, read_struct, read_varint

ENCODING: Final = 7
"""``DELTA_BYTE_ARRAY``: each string as the prefix it shares with the string before, and a suffix."""

_NUMBERS: Final = 5
"""``DELTA_BINARY_PACKED``: numbers by their differences."""

_HEADER_V2 = 8
_DEFINITIONS, _REPETITIONS, _IS_PACKED = 5, 6, 7
_LEVELS_LENGTH: Final = 4
_INT32: Final = 1


@dataclass(frozen=True, slots=True)
class Shared:
    """Upper bounds for the strings of a page: the length of the longest, and of all together."""

    longest: int
    together: int


def shared(source: InputFile, page: ColumnPage, codec: str | None, levels: int) -> Shared:
    """Return the sizes of a page's strings. ``levels`` is the number of level kinds before the values of a v1 page.

    Raises ``LookupError``, ``ValueError`` or an error of pyarrow where the page is not understood.
    """
    values = _values(source, page, codec, levels)
    _, at = read_varint(values, 0)
    _, at = read_varint(values, at)
    count, _ = read_varint(values, at)
    if not count:
        return Shared(0, 0)
    prefixes = np.asarray(decoded_page(values, _INT32, count, _NUMBERS)).astype(np.int64)
    if int(prefixes.min()) < 0:
        raise ValueError("a string that shares less than nothing")
    return Shared(int(prefixes.max()) + len(values), int(prefixes.sum()) + len(values))


def _values(source: InputFile, page: ColumnPage, codec: str | None, levels: int) -> bytes:
    data = source.read_at(page.body, page.packed)
    if page.kind == DATA_V2:
        header, _ = read_struct(source.read_at(page.place, page.header), 0)
        inner, _ = read_struct(header[_HEADER_V2][1], 0)
        before = sum(_level_bytes(inner, number) for number in (_DEFINITIONS, _REPETITIONS))
        is_packed = inner.get(_IS_PACKED, (0, b""))[0] != FALSE
        return _unpacked(data[before:], page.unpacked - before, codec if is_packed else None)
    data = _unpacked(data, page.unpacked, codec)
    at = 0
    for _ in range(levels):
        at += _LEVELS_LENGTH + int.from_bytes(data[at : at + _LEVELS_LENGTH], "little")
    return data[at:]


def _level_bytes(header: Fields, number: int) -> int:
    kind, data = header.get(number, (I32, b"\0"))
    size = read_i32(data) if kind == I32 else -1
    if size < 0:
        raise ValueError("levels of a negative size")
    return size


def _unpacked(data: bytes, size: int, codec: str | None) -> bytes:
    unpacked: Any = data if codec is None else pa.decompress(data, size, codec=codec, asbytes=True)
    return bytes(unpacked)

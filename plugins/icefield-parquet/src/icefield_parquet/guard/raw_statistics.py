"""Checks of the statistics in a footer's bytes, before pyarrow decodes them.

pyarrow decodes the statistics of a column chunk when Python first asks whether there are any. If a minimum is shorter
than its type, or the chunk's type differs from its column's, pyarrow throws a C++ exception. Nothing catches it, and
the process ends. So the lengths are compared here, in a walk that interprets the bytes as pyarrow does.

Reproducer: cut the ``min_value`` of an int64 column to three bytes in the footer of any file and ask for
``pq.ParquetFile(file).metadata.row_group(0).column(0).statistics``; ``tests/guard/test_fuzz.py`` makes such files.
Since https://github.com/apache/arrow/issues/48089, Arrow's own fuzzing reads statistics, but only in C++. This guard
may go when the oldest pyarrow that the plugin accepts raises a Python exception there.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from icefield_parquet.guard.chunk_metadata import visit_chunks
from icefield_parquet.thrift import BINARY, FALSE, I32, I64, LIST, STRUCT, read_field, read_size, skip

# Fields of ColumnMetaData, and the bounds in Statistics.
_TYPE, _STATISTICS = 1, 12
_BOUNDS: Final = frozenset({1, 2, 5, 6})

_LONG_HEADER: Final = 0x0F
"""The greatest first byte of a field header in the long form, with a separate number, or of the end of a struct."""
_LAST_BYTE: Final = 0x7F
"""The greatest last byte of an integer."""
_ONE_STRING: Final = 1 << 4 | BINARY
"""The header of a list with one string: the path of a top-level column."""

_Known: TypeAlias = "dict[tuple[int, int], bytes]"
"""The last list or struct that was passed over in each field. Chunks have the same encodings, and where the bytes are
the same, so is their end."""

_TYPES: Final = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_WIDTH_OF: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}


def check_statistics(footer: bytes, schema: Any) -> None:
    """Raise ``ValueError`` where the statistics of a column chunk do not have its column's type.

    pyarrow parsed ``schema`` from ``footer``, which may be followed by other bytes.
    """
    expected = [_expected(schema.column(at)) for at in range(len(schema))]
    known: _Known = {}

    def check(data: bytes, at: int, column: int) -> int:
        return _check_meta_data(data, at, *expected[column], known)

    try:
        visit_chunks(footer, check, len(expected))
    except IndexError:
        raise ValueError("the statistics reach beyond the footer") from None


def _expected(column: Any) -> tuple[int, int]:
    """The footer's number for a column's physical type, and the fewest bytes of a bound."""
    kind = column.physical_type
    width = int(column.length) if kind == "FIXED_LEN_BYTE_ARRAY" else _WIDTH_OF.get(kind, 0)
    return _TYPES.index(kind), width


# A footer has some thirty fields for each column chunk. So the two functions below read headers of one byte and
# integers inline: calls would take most of the time.


def _check_meta_data(data: bytes, at: int, physical: int, width: int, known: _Known) -> int:
    number = 0
    while True:
        head = data[at]
        if head > _LONG_HEADER:
            kind, number, at = head & 0x0F, number + (head >> 4), at + 1
        else:
            kind, number, at = read_field(data, at, number)
        if kind == I64:
            while data[at] > _LAST_BYTE:
                at += 1
            at += 1
        elif kind == LIST and data[at] == _ONE_STRING and data[at + 1] <= _LAST_BYTE:
            at += 2 + data[at + 1]
        elif not kind:
            return at
        elif number == _STATISTICS and kind == STRUCT:
            at = _check_bounds(data, at, width)
        elif number == _TYPE and kind == I32:
            value, at = read_size(data, at)
            if value != physical << 1:
                raise ValueError("a column chunk of another type than its column")
        elif kind in (LIST, STRUCT):
            last = known.get((number, kind))
            if last is not None and data.startswith(last, at):
                at += len(last)
            else:
                start = at
                at = skip(data, at, kind)
                known[number, kind] = data[start:at]
        else:
            at = skip(data, at, kind)


def _check_bounds(data: bytes, at: int, width: int) -> int:
    number = 0
    while True:
        head = data[at]
        if head > _LONG_HEADER:
            kind, number, at = head & 0x0F, number + (head >> 4), at + 1
        else:
            kind, number, at = read_field(data, at, number)
        if kind == BINARY and number in _BOUNDS:
            size = data[at]
            if size > _LAST_BYTE:
                size, at = read_size(data, at)
            else:
                at += 1
            if size < width:
                raise ValueError(f"a bound of {size} bytes where values have {width}")
            at += size
        elif kind == I64:
            while data[at] > _LAST_BYTE:
                at += 1
            at += 1
        elif not kind:
            return at
        elif kind > FALSE:  # a truth value has no bytes but its header
            at = skip(data, at, kind)

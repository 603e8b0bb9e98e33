"""The statistics in a footer's bytes, looked at before pyarrow decodes them.

pyarrow decodes the statistics of a column chunk when Python first asks whether there are any. Where a minimum is
shorter than its type, or the chunk is of another type than its column, it throws, nothing catches that, and the process
ends. So the lengths are compared here, in a walk over the bytes that takes them for what pyarrow does.

Reproducer: cut the ``min_value`` of an int64 column to three bytes in the footer of any file and ask for
``pq.ParquetFile(file).metadata.row_group(0).column(0).statistics``; ``tests/guard/test_fuzz.py`` makes such files.
Arrow reads statistics in its own fuzzing since https://github.com/apache/arrow/issues/48089, in C++ alone. This guard
may go when the oldest pyarrow that the plugin accepts raises a Python exception there.
"""

from __future__ import annotations

from typing import Any, Final

from icefield_parquet.thrift import BINARY, I32, LIST, STRUCT, read_field, read_list, read_size, skip

# Fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData, and the bounds in Statistics.
_ROW_GROUPS, _COLUMNS, _META_DATA, _TYPE, _STATISTICS = 4, 1, 3, 1, 12
_BOUNDS: Final = frozenset({1, 2, 5, 6})

_TYPES: Final = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_WIDTH_OF: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}


def check_statistics(footer: bytes, schema: Any) -> None:
    """Raise ``ValueError`` where the statistics of a column chunk are not of its column's type.

    ``footer`` is what pyarrow parsed ``schema`` from, and may be followed by other bytes.
    """
    columns = [schema.column(at) for at in range(len(schema))]
    expected = [(_TYPES.index(column.physical_type), _width(column)) for column in columns]
    try:
        _check_footer(footer, expected)
    except IndexError:
        raise ValueError("the statistics reach beyond the footer") from None


def _width(column: Any) -> int:
    kind = column.physical_type
    return int(column.length) if kind == "FIXED_LEN_BYTE_ARRAY" else _WIDTH_OF.get(kind, 0)


def _check_footer(data: bytes, expected: list[tuple[int, int]]) -> None:
    at = number = 0
    while True:
        kind, number, at = read_field(data, at, number)
        if not kind:
            return
        if number == _ROW_GROUPS and kind == LIST:
            _, count, at = read_list(data, at)
            for _ in range(count):
                at = _check_row_group(data, at, expected)
        else:
            at = skip(data, at, kind)


def _check_row_group(data: bytes, at: int, expected: list[tuple[int, int]]) -> int:
    number = 0
    while True:
        kind, number, at = read_field(data, at, number)
        if not kind:
            return at
        if number == _COLUMNS and kind == LIST:
            _, count, at = read_list(data, at)
            if count != len(expected):
                raise ValueError("a row group with another number of columns than the schema")
            for physical, width in expected:
                at = _check_chunk(data, at, physical, width)
        else:
            at = skip(data, at, kind)


def _check_chunk(data: bytes, at: int, physical: int, width: int) -> int:
    number = 0
    while True:
        kind, number, at = read_field(data, at, number)
        if not kind:
            return at
        if number == _META_DATA and kind == STRUCT:
            at = _check_meta_data(data, at, physical, width)
        else:
            at = skip(data, at, kind)


def _check_meta_data(data: bytes, at: int, physical: int, width: int) -> int:
    number = 0
    while True:
        kind, number, at = read_field(data, at, number)
        if not kind:
            return at
        if number == _STATISTICS and kind == STRUCT:
            at = _check_bounds(data, at, width)
        elif number == _TYPE and kind == I32:
            value, at = read_size(data, at)
            if value != physical << 1:
                raise ValueError("a column chunk of another type than its column")
        else:
            at = skip(data, at, kind)


def _check_bounds(data: bytes, at: int, width: int) -> int:
    number = 0
    while True:
        kind, number, at = read_field(data, at, number)
        if not kind:
            return at
        if number in _BOUNDS and kind == BINARY:
            size, at = read_size(data, at)
            if size < width:
                raise ValueError(f"a bound of {size} bytes where values have {width}")
            at += size
        else:
            at = skip(data, at, kind)

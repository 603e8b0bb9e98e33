"""The codecs in a footer's bytes, looked at before Python asks for them.

Where a column chunk has a codec that pyarrow does not know, its reader raises an error; where Python asks for the
codec, nothing catches what is thrown, and the process ends.

Reproducer: set the codec of any chunk to 63 and ask for
``pq.ParquetFile(file).metadata.row_group(0).column(0).compression``; ``tests/guard/test_fuzz.py`` makes such files.
This guard may go when the oldest pyarrow that the plugin accepts raises a Python exception there.
"""

from __future__ import annotations

from typing import Final

from icefield_parquet.thrift import LIST, STRUCT, read_field, read_i32s, read_list, skip

# Fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_ROW_GROUPS, _COLUMNS, _META_DATA, _CODEC = 4, 1, 3, 4
_LAST_CODEC: Final = 7
"""LZ4_RAW, the last that the format has."""


def check_codecs(footer: bytes) -> None:
    """Raise ``ValueError`` where a column chunk has a codec that the format does not know.

    ``footer`` may be followed by other bytes.
    """
    try:
        _struct(footer, 0, 0)
    except IndexError:
        raise ValueError("its column chunks reach beyond the footer") from None


_WAY: Final = ((_ROW_GROUPS, LIST), (_COLUMNS, LIST), (_META_DATA, STRUCT))
"""Through which fields codecs are reached, and of what kind those are."""


def _struct(data: bytes, at: int, depth: int) -> int:
    """Check what is in a struct so far from the footer's own; give its end."""
    if depth == len(_WAY):
        return _meta_data(data, at)
    number = 0
    while True:
        kind, number, at = read_field(data, at, number)
        if not kind:
            return at
        if (number, kind) != _WAY[depth]:
            at = skip(data, at, kind)
        elif kind == LIST:
            _, count, at = read_list(data, at)
            for _ in range(count):
                at = _struct(data, at, depth + 1)
        else:
            at = _struct(data, at, depth + 1)


def _meta_data(data: bytes, at: int) -> int:
    found, end = read_i32s(data, at, (_CODEC,))
    codec = found.get(_CODEC, 0)
    if not 0 <= codec <= _LAST_CODEC:
        raise ValueError(f"a column chunk of codec {codec}, which the format does not know")
    return end

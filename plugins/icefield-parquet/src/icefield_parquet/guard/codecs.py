"""The codecs in a footer's bytes, looked at before Python asks for them.

Where a column chunk has a codec that pyarrow does not know, its reader raises an error; where Python asks for the
codec, nothing catches what is thrown, and the process ends.

Reproducer: set the codec of any chunk to 63 and ask for
``pq.ParquetFile(file).metadata.row_group(0).column(0).compression``; ``tests/guard/test_fuzz.py`` makes such files.
This guard may go when the oldest pyarrow that the plugin accepts raises a Python exception there.
"""

from __future__ import annotations

from typing import Final

from icefield_parquet.thrift import DEEPEST, I32, LIST, STRUCT, VARINTS, read_field, read_int, read_list, skip

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
    """As ``_struct``, of a chunk's metadata, in one loop with what is in it: a footer may have very many."""
    number = depth = 0
    while True:
        head = data[at]
        kind = head & 0x0F
        if not kind:  # the end of the metadata, or of a struct in it
            at += 1
            if not depth:
                return at
            depth -= 1
            continue
        if head > 0x0F:
            at += 1
            number += 0 if depth else head >> 4
        else:
            _, there, at = read_field(data, at, number)
            number = number if depth else there
        if kind in VARINTS:
            start = at
            while data[at] > 0x7F:
                at += 1
            at += 1
            if number == _CODEC and kind == I32 and not depth:
                codec = read_int(data[start:at])
                if not 0 <= codec <= _LAST_CODEC:
                    raise ValueError(f"a column chunk of codec {codec}, which the format does not know")
        elif kind == STRUCT:
            depth += 1
            if depth > DEEPEST:
                raise ValueError("metadata of a column chunk that are nested too deeply")
        else:
            at = skip(data, at, kind)

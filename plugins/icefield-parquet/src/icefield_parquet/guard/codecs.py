"""The codecs in a footer's bytes, looked at before Python asks for them.

pyarrow's reader raises an error for a column chunk with an unknown codec. When Python asks for such a codec, nothing
catches the C++ exception, and the process ends.

Reproducer: set the codec of any chunk to 63 and ask for
``pq.ParquetFile(file).metadata.row_group(0).column(0).compression``; ``tests/guard/test_fuzz.py`` makes such files.
This guard may go when the oldest pyarrow that the plugin accepts raises a Python exception there.
"""

from __future__ import annotations

from typing import Final

from icefield_parquet.guard.chunk_metadata import visit_chunks
from icefield_parquet.thrift import read_i32s

_CODEC: Final = 4
"""A field of ColumnMetaData."""
_LAST_CODEC: Final = 7
"""LZ4_RAW, the last that the format has."""


def check_codecs(footer: bytes) -> None:
    """Raise ``ValueError`` where a column chunk has a codec that the format does not know.

    ``footer`` may be followed by other bytes.
    """
    try:
        visit_chunks(footer, _check_chunk)
    except IndexError:
        raise ValueError("its column chunks reach beyond the footer") from None


def _check_chunk(data: bytes, at: int, column: int) -> int:
    found, end = read_i32s(data, at, (_CODEC,))
    codec = found.get(_CODEC, 0)
    if not 0 <= codec <= _LAST_CODEC:
        raise ValueError(f"a column chunk of codec {codec}, which the format does not know")
    return end

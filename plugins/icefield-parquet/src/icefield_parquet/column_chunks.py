"""What a footer says of column chunks is checked before Python looks at it.

The library checks the description of a chunk when it is first looked at, and throws. Where it reads, that becomes an
error of Python; where Python asks for a property of the chunk nothing catches it, and the process ends. So the library
is let to begin a read of every chunk, which looks at all descriptions, from a source that gives nothing.
"""

from __future__ import annotations

import io
import mmap
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

_LOOKED_AT_ALL: Final = "Deserializing page header failed"
"""What the library says of a page of zeros: that it has come to read one."""


def check_column_chunks(footer: Any, size: int, columns: Sequence[int]) -> None:
    """Raise ``ValueError`` where the description of a chunk of these columns is damaged."""
    groups = list(range(footer.num_row_groups))
    if not groups or not columns or _reads_zeros(footer, size, groups, columns):
        return
    source = _Nothing(size)
    try:
        _begin(source, footer, groups, columns)
    except (pa.ArrowException, OSError, ValueError) as error:
        # Once it asks for bytes, it has looked at every description.
        if not source.was_asked:
            raise ValueError(f"a column chunk: {error}") from error


def _reads_zeros(footer: Any, size: int, groups: list[int], columns: Sequence[int]) -> bool:
    """Whether the library comes to read pages, from memory that nothing was put into and that so takes none.

    Sources in Python tell that better, but each of their methods waits for the interpreter.
    """
    try:
        zeros = mmap.mmap(-1, size)
    except (OSError, ValueError, OverflowError):
        return False
    try:
        _begin(pa.BufferReader(pa.py_buffer(zeros)), footer, groups, columns)
    except (pa.ArrowException, OSError, ValueError) as error:
        return _LOOKED_AT_ALL in str(error)
    return False


def _begin(source: Any, footer: Any, groups: list[int], columns: Sequence[int]) -> None:
    reader = pq.ParquetFile(source, metadata=footer, pre_buffer=True).reader
    next(reader.iter_batches(1, groups, column_indices=list(columns), use_threads=False), None)


class _Nothing(io.RawIOBase):
    """A source of a size, which notes that it was asked for bytes and has none."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.was_asked = False
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1) -> bytes:
        self.was_asked = True
        # An exception would be kept by the library together with all that its traceback holds, this file included, and
        # none of it would ever be let go.
        return b""

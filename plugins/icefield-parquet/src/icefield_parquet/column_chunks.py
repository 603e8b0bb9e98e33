"""What a footer says of column chunks is checked before Python looks at it.

The library checks the description of a chunk when it is first looked at, and throws. Where it reads, that becomes an
error of Python; where Python asks for a property of the chunk nothing catches it, and the process ends. So the library
is let to begin a read of every chunk, which looks at all descriptions, from a source that gives nothing.
"""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def check_column_chunks(footer: Any, size: int) -> None:
    """Raise ``ValueError`` where the description of a column chunk is damaged."""
    groups, columns = list(range(footer.num_row_groups)), list(range(footer.num_columns))
    if not groups or not columns:
        return
    source = _Nothing(size)
    try:
        reader = pq.ParquetFile(source, metadata=footer, pre_buffer=True).reader
        next(reader.iter_batches(1, groups, column_indices=columns, use_threads=False), None)
    except (pa.ArrowException, OSError, ValueError) as error:
        # Once it asks for bytes, it has looked at every description.
        if not source.was_asked:
            raise ValueError(f"a column chunk: {error}") from error


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

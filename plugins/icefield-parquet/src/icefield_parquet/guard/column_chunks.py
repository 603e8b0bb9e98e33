"""Checks of the column chunks in a footer, before Python asks for their properties.

pyarrow checks the metadata of a chunk at its first use, and throws a C++ exception for an error. During a read, that
becomes a Python exception. When Python asks for a property of the chunk, nothing catches it, and the process ends. So
this guard lets pyarrow begin a read of every chunk, from a source that returns no bytes: this checks the metadata of
all chunks.

Reproducer (no upstream issue was found): open a file with an encrypted column under a plain footer without keys, and
ask for ``pq.ParquetFile(file).metadata.row_group(0).column(0)``. This guard may go when the oldest pyarrow that the
plugin accepts raises a Python exception there.
"""

from __future__ import annotations

import io
import mmap
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def check_column_chunks(footer: Any, size: int, columns: Sequence[int]) -> None:
    """Raise ``ValueError`` where the description of a chunk of these columns is damaged."""
    groups = list(range(footer.num_row_groups))
    if not groups or not columns:
        return
    source = _closable(size)
    try:
        reader = pq.ParquetFile(source, metadata=footer, pre_buffer=True).reader
        if isinstance(source, pa.BufferReader):
            source.close()
        next(reader.iter_batches(1, groups, column_indices=list(columns), use_threads=False), None)
    except (pa.ArrowException, OSError, ValueError) as error:
        # pyarrow asks for bytes only after it has checked every description. It raises ``ArrowInvalid`` for a closed
        # source, but not for damage.
        asked = isinstance(error, pa.ArrowInvalid) if isinstance(source, pa.BufferReader) else source.was_asked
        if not asked:
            raise ValueError(f"a column chunk: {error}") from error


def _closable(size: int) -> pa.BufferReader | _Nothing:
    """A source of a given size, to be closed before it is read: mapped memory takes no room while nothing is written.

    A source in Python would serve as well, but each of its methods waits for the interpreter.
    """
    try:
        return pa.BufferReader(pa.py_buffer(mmap.mmap(-1, size)))
    except (OSError, ValueError, OverflowError):
        return _Nothing(size)


class _Nothing(io.RawIOBase):
    """A source of a given size that returns no bytes, and notes that it was asked for some."""

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
        # pyarrow would keep an exception for ever, and with it all objects of its traceback, including this file.
        return b""

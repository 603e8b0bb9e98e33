"""Checks of the column chunks in a footer, before Python asks for their properties.

pyarrow checks the metadata of a chunk at its first use, and throws a C++ exception for an error. During a read, that
becomes a Python exception. When Python asks for a property of the chunk, nothing catches it, and the process ends. So
pyarrow begins a read of every chunk, which checks the metadata of all, from a source that returns no bytes.

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
        # Once it asks for bytes, it has looked at every description. A closed source is invalid to it, damage is not.
        asked = isinstance(error, pa.ArrowInvalid) if isinstance(source, pa.BufferReader) else source.was_asked
        if not asked:
            raise ValueError(f"a column chunk: {error}") from error


def _closable(size: int) -> pa.BufferReader | _Nothing:
    """A source of a size: memory that nothing was put into and that so takes none, to be closed before it is read.

    Sources in Python do as well, but each of their methods waits for the interpreter.
    """
    try:
        return pa.BufferReader(pa.py_buffer(mmap.mmap(-1, size)))
    except (OSError, ValueError, OverflowError):
        return _Nothing(size)


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
        # An exception would be kept by pyarrow together with all that its traceback holds, this file included, and
        # none of it would ever be let go.
        return b""

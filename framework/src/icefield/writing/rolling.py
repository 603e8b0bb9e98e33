"""Writes files of about the target size, one after another."""

from __future__ import annotations

import pyarrow as pa

from icefield.abc import FlushingWriter
from icefield.writing.files import FileSet, OpenFile, Partition

_SLICE_BYTES = 32 << 20
_SLICES_A_FILE = 8


class RollingWriter:
    """Writes the rows of one partition, and begins a new file whenever the current one has reached the target size.

    Not for use by several threads at once.
    """

    def __init__(self, files: FileSet, partition: Partition, target_bytes: int) -> None:
        self._files = files
        self._partition = partition
        self._target = target_bytes
        self._slice_bytes = max(1, min(_SLICE_BYTES, target_bytes // _SLICES_A_FILE))
        self._current: OpenFile | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows, in pieces small enough that a file ends near its target."""
        rows = max(1, batch.num_rows * self._slice_bytes // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, rows):
            self._write(batch.slice(start, rows) if rows < batch.num_rows else batch)

    def _write(self, batch: pa.RecordBatch) -> None:
        if self._current is None:
            self._current = self._files.open(self._partition)
        self._current.write(batch)
        if self._current.writer.estimated_size >= self._target:
            self.close()

    @property
    def buffered_bytes(self) -> int:
        """The bytes that are buffered in the current file's writer."""
        return 0 if self._current is None else self._current.writer.buffered_bytes

    def flush(self) -> None:
        """Empty the buffers of the current file's writer; if its format cannot do so, the file is finished."""
        if self._current is not None:
            writer = self._current.writer
            if isinstance(writer, FlushingWriter):
                writer.flush()
            if self.buffered_bytes:
                self.close()

    def close(self) -> None:
        """Finish the current file, if there is one."""
        if self._current is not None:
            current, self._current = self._current, None
            self._files.finish(current)

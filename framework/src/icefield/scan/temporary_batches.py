"""Batches that do not fit into memory, in temporary files of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa

BUFFER_BYTES: Final = 128 << 20
"""The memory limit in bytes for rows to compare; larger amounts go to temporary files."""

_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")


class TemporaryBatches(ExitStack):
    """Files of batches of one schema, numbered from 0, in a temporary folder that is deleted at the end.

    A file is written, then ended, then read once. LZ4 compresses repeating strings well and is faster than a disk.
    """

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__()
        self._schema = schema
        self._folder: Path | None = None
        self._files: list[tuple[pa.OSFile, pa.RecordBatchStreamWriter]] = []
        self._counts: list[int] = []

    def __len__(self) -> int:
        """The number of files."""
        return len(self._files)

    def begin(self) -> int:
        """Begin a new file; return its number."""
        if self._folder is None:
            self._folder = Path(self.enter_context(TemporaryDirectory(prefix="icefield-")))
        number = len(self._files)
        sink = self.enter_context(pa.OSFile(str(self._path(number)), "wb"))
        self._files.append((sink, pa.ipc.new_stream(sink, self._schema, options=_OPTIONS)))
        self._counts.append(0)
        return number

    def write(self, number: int, batch: pa.RecordBatch) -> None:
        """Append a batch to a file."""
        self._files[number][1].write_batch(batch)
        self._counts[number] += 1

    def end(self, number: int) -> int:
        """Close a file before it is read; return its number of batches."""
        sink, writer = self._files[number]
        writer.close()
        sink.close()
        return self._counts[number]

    def read(self, number: int) -> Iterator[pa.RecordBatch]:
        """The batches of a file; the file is deleted after the last batch."""
        with pa.OSFile(str(self._path(number)), "rb") as source, pa.ipc.open_stream(source) as reader:
            yield from reader
        self._path(number).unlink()

    def _path(self, number: int) -> Path:
        assert self._folder is not None
        return self._folder / f"{number}.arrow"

"""The files of one write: named, opened, described when they are finished, and deleted when the write fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from threading import Lock
from typing import Any, ClassVar

import pyarrow as pa

from icefield.abc import FlushingWriter, FormatAbility, FormatOfManyFiles, FormatWriter, Note, OutputStream, WrittenFile
from icefield.errors import FileExists, IcefieldError
from icefield.manifest import DataFile
from icefield.metadata.metrics import MetricsConfig, apply_modes
from icefield.storage import FileIO, LocationProvider, NewFile
from icefield.writing.context import WriteContext


class NewFiles:
    """Names and opens the files of one call. Threads may share it.

    Names are ``<task>-<attempt>-<operation>-<number><suffix>.<extension>``, so files of different tasks, attempts or
    operations never collide.
    """

    def __init__(
        self,
        io: FileIO,
        locations: LocationProvider,
        operation_id: str,
        task_id: int,
        attempt: int,
        note: Note | None = None,
        suffix: str = "",
    ) -> None:
        self._io = io
        self._locations = locations
        self._prefix = f"{task_id:05d}-{attempt}-{operation_id}"
        self._note = note
        self._suffix = suffix
        self._numbers = count(1)
        self._lock = Lock()

    def begin(self, extension: str, partition_path: str = "", *, native: bool = False) -> tuple[int, str, NewFile]:
        """Open the next file: its number, its location, and its output stream, encrypted if the table is."""
        with self._lock:
            number = next(self._numbers)
        name = f"{self._prefix}-{number:05d}{self._suffix}.{extension}"
        location = self._locations.data_location(name, partition_path)
        if self._note is not None:
            self._note(location)
        return number, location, self._io.create(location, native=native)


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition that rows are written to: its values, its folder, its number in order of first use, and its spec."""

    values: tuple[Any, ...]
    path: str
    order: int
    spec_id: int


@dataclass(eq=False, slots=True)
class OpenFile:
    """A file that is being written."""

    number: int
    location: str
    partition: Partition
    writer: FormatWriter
    file: NewFile
    rows: int = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self.writer.write(batch)
        self.rows += batch.num_rows


class FileSet:
    """Every file that a call of ``write_batches`` opens. Threads may share it."""

    opens: ClassVar[type[OpenFile]] = OpenFile
    """The class of open files."""

    def __init__(
        self,
        context: WriteContext,
        task_id: int = 0,
        attempt: int = 0,
        note: Note | None = None,
        *,
        suffix: str = "",
    ) -> None:
        """``note`` is called with the location of each file before it is begun."""
        self.context = context
        self._new = NewFiles(context.io, context.locations, context.operation_id, task_id, attempt, note, suffix)
        self._format = context.io.file_format(context.file_format)
        settings: dict[str, Any] = {"schema": context.schema, "properties": context.properties}
        self._open_writer: Callable[[OutputStream], FormatWriter] = partial(self._format.open_writer, **settings)
        if isinstance(self._format, FormatOfManyFiles):
            self._open_writer = self._format.writers(context.schema, properties=context.properties)
        self._metrics = MetricsConfig.from_properties(context.properties, context.schema)
        self._lock = Lock()
        self._open: set[OpenFile] = set()
        self._finished: list[tuple[int, int, DataFile]] = []
        self._abandoned = False

    def open(self, partition: Partition) -> OpenFile:
        """Begin the next file of a partition."""
        native = FormatAbility.ENCRYPTS in self._format.abilities
        number, location, file = self._new.begin(self._format.extension, partition.path, native=native)
        try:
            writer = self._open_writer(file.sink)
            opened = self.opens(number, location, partition, writer, file)
            with self._lock:
                self._open.add(opened)
                abandoned = self._abandoned
        except BaseException:
            file.sink.abort()
            raise
        if abandoned:
            self._discard(opened)
        return opened

    def finish(self, opened: OpenFile) -> None:
        """Complete a file and describe it."""
        try:
            written = opened.writer.close()
        except FileExists:
            self._discard(opened)  # the existing file belongs to another writer with the same names
            raise
        described = self._describe(opened, written)
        with self._lock:
            self._open.discard(opened)
            self._finished.append((opened.partition.order, opened.number, described))

    def data_files(self) -> list[DataFile]:
        """The finished files: by partition in order of first use, then in the order in which they were begun."""
        return [file for _, file in self.by_partition()]

    def by_partition(self) -> list[tuple[int, DataFile]]:
        """The finished files in the order of ``data_files``, each with the ``order`` of its partition."""
        return [(order, file) for order, _, file in sorted(self._finished, key=lambda entry: entry[:2])]

    def abandon(self) -> None:
        """Abort open files and delete finished ones; none of them was committed."""
        with self._lock:
            self._abandoned = True
            open_files = list(self._open)
            # An interrupt may have come after an open file was closed, and so published.
            locations = [*(file.file_path for _, _, file in self._finished), *(each.location for each in open_files)]
        for opened in open_files:
            self._discard(opened)
        take_back(self.context.io, locations)

    def _discard(self, opened: OpenFile) -> None:
        with contextlib.suppress(IcefieldError, OSError, ValueError):
            opened.writer.abort()
        with self._lock:
            self._open.discard(opened)

    def _describe(self, opened: OpenFile, written: WrittenFile) -> DataFile:
        context = self.context
        size, key_metadata = opened.file.stored(written.size)
        encoded = apply_modes(written.metrics, self._metrics, context.schema)
        return DataFile(
            file_path=opened.location,
            file_format=self._format.name,
            record_count=opened.rows,
            file_size_in_bytes=size,
            partition=opened.partition.values,
            spec_id=opened.partition.spec_id,
            column_sizes=encoded.column_sizes,
            value_counts=encoded.value_counts,
            null_value_counts=encoded.null_value_counts,
            nan_value_counts=encoded.nan_value_counts,
            lower_bounds=encoded.lower_bounds,
            upper_bounds=encoded.upper_bounds,
            split_offsets=tuple(written.split_offsets) if written.split_offsets else None,
            sort_order_id=context.sort_order_id,
            key_metadata=key_metadata,
        )


def take_back(io: FileIO, locations: list[str]) -> None:
    """Delete the files of a failed write.

    No error is raised here, since the caller must see the error of the write. Files that stay are orphans for
    maintenance to delete.
    """
    with contextlib.suppress(IcefieldError, OSError):
        io.delete_many(locations)


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
            if self._current is None:
                self._current = self._files.open(self._partition)
            self._current.write(batch.slice(start, rows) if rows < batch.num_rows else batch)
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

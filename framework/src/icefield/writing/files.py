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

from icefield.abc import FileFormat, FormatOfManyFiles, FormatWriter, Note, OutputStream, WrittenFile
from icefield.errors import FileExists, IcefieldError
from icefield.manifest import DataFile
from icefield.metadata.metrics import MetricsConfig, apply_modes
from icefield.storage import FileIO, LocationProvider
from icefield.writing.context import WriteContext


class NewFiles:
    """Names and opens the files of one call. Threads may share it.

    Names are ``<task>-<attempt>-<operation>-<number><suffix>.<extension>``, so files of different tasks, attempts or
    operations never collide.
    """

    def __init__(
        self, io: FileIO, locations: LocationProvider, prefix: str, note: Note | None = None, suffix: str = ""
    ) -> None:
        self._io = io
        self._locations = locations
        self._prefix = prefix
        self._note = note
        self._suffix = suffix
        self._numbers = count(1)
        self._lock = Lock()

    def begin(self, extension: str, partition_path: str = "") -> tuple[int, str, OutputStream]:
        """Open the next file: its number, its location, and its output stream."""
        with self._lock:
            number = next(self._numbers)
        name = f"{self._prefix}-{number:05d}{self._suffix}.{extension}"
        location = self._locations.data_location(name, partition_path)
        if self._note is not None:
            self._note(location)
        return number, location, self._io.open_output(location)


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition that rows are written to: its values, its folder, its number in order of first use, and its spec."""

    values: tuple[Any, ...]
    path: str
    order: int
    spec_id: int


class OpenFile:
    """A file that is being written."""

    __slots__ = ("location", "number", "partition", "rows", "writer")

    def __init__(self, number: int, location: str, partition: Partition, writer: FormatWriter) -> None:
        self.number = number
        self.location = location
        self.partition = partition
        self.writer = writer
        self.rows = 0

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
        task_id: int,
        attempt: int,
        note: Note | None = None,
        *,
        suffix: str = "",
    ) -> None:
        """``note`` is called with the location of each file before it is begun."""
        self._context = context
        prefix = file_prefix(task_id, attempt, context.operation_id)
        self._new = NewFiles(context.io, context.locations, prefix, note, suffix)
        self._format = context.io.file_format(context.file_format)
        self._open_writer = _writers(self._format, context)
        self._metrics = MetricsConfig.from_properties(context.properties, context.schema)
        self._lock = Lock()
        self._open: set[OpenFile] = set()
        self._finished: list[tuple[int, int, DataFile]] = []
        self._abandoned = False

    def open(self, partition: Partition) -> OpenFile:
        """Begin the next file of a partition."""
        number, location, sink = self._new.begin(self._format.extension, partition.path)
        try:
            writer = self._open_writer(sink)
            opened = self.opens(number, location, partition, writer)
            with self._lock:
                self._open.add(opened)
                abandoned = self._abandoned
        except BaseException:
            sink.abort()
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
        take_back(self._context.io, locations)

    def _discard(self, opened: OpenFile) -> None:
        with contextlib.suppress(IcefieldError, OSError, ValueError):
            opened.writer.abort()
        with self._lock:
            self._open.discard(opened)

    def _describe(self, opened: OpenFile, written: WrittenFile) -> DataFile:
        context = self._context
        encoded = apply_modes(written.metrics, self._metrics, context.schema)
        return DataFile(
            file_path=opened.location,
            file_format=self._format.name,
            record_count=opened.rows,
            file_size_in_bytes=written.size,
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
        )


def _writers(file_format: FileFormat, context: WriteContext) -> Callable[[OutputStream], FormatWriter]:
    """A factory of writers for the files of one write."""
    if isinstance(file_format, FormatOfManyFiles):
        return file_format.writers(context.schema, properties=context.properties)
    return partial(file_format.open_writer, schema=context.schema, properties=context.properties)


def file_prefix(task_id: int, attempt: int, operation_id: str) -> str:
    """The prefix of the names of the files of a call."""
    return f"{task_id:05d}-{attempt}-{operation_id}"


def take_back(io: FileIO, locations: list[str]) -> None:
    """Delete the files of a failed write.

    No error is raised here, since the caller must see the error of the write. Files that stay are orphans for
    maintenance to delete.
    """
    with contextlib.suppress(IcefieldError, OSError):
        io.delete_many(locations)

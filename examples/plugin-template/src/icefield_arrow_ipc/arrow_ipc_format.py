"""Arrow IPC files, by field id.

Arrow keeps a field's metadata, and with it the field ids, so that a file needs no schema besides its own. The format
declares no ability: it reads whole files, in record batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from icefield import Schema
from icefield.abc import FileFormat, FormatReader, FormatWriter, InputFile, OutputStream, ReadRequest, WrittenFile
from icefield.arrow_pruning import prune_batch
from icefield.errors import InvalidFile
from icefield.metrics import Metrics, MetricsCollector
from icefield.schema_arrow import schema_to_arrow


class ArrowIpcFormat(FileFormat):
    """The file format ``arrow-ipc``."""

    name = "arrow-ipc"
    extension = "arrow"

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> FormatReader:
        return ArrowIpcReader(source, location)

    def open_writer(
        self,
        sink: OutputStream,
        schema: Schema,
        *,
        properties: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> FormatWriter:
        return ArrowIpcWriter(sink, schema, metadata or {})


class ArrowIpcReader(FormatReader):
    """Reads a file batch by batch."""

    def __init__(self, source: InputFile, location: str) -> None:
        self._source, self._location = source, location
        try:
            self._file = pa.ipc.open_file(source)
        except (pa.ArrowException, OSError, ValueError) as error:
            source.close()
            raise self._damaged(error) from error

    @property
    def schema(self) -> pa.Schema:
        return self._file.schema.remove_metadata()

    @property
    def metadata(self) -> Mapping[str, bytes]:
        return {key.decode(): value for key, value in (self._file.schema.metadata or {}).items()}

    def read(self, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        position = 0
        for number in range(self._file.num_record_batches):
            try:
                whole = self._file.get_batch(number)
                whole.validate(full=True)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise self._damaged(error) from error
            for start in range(0, whole.num_rows, request.batch_rows):
                part = whole.slice(start, request.batch_rows)
                batch = prune_batch(part, request.columns)
                yield _with_positions(batch, position + start) if request.positions else batch
            position += whole.num_rows

    def metrics(self) -> Metrics:
        rows = sum(self._file.get_batch(i).num_rows for i in range(self._file.num_record_batches))
        return Metrics(record_count=rows)

    def close(self) -> None:
        self._source.close()

    def _damaged(self, error: Exception) -> InvalidFile:
        return InvalidFile(f"{self._location} is no whole Arrow IPC file: {error}", location=self._location)


class ArrowIpcWriter(FormatWriter):
    """Writes each batch as it comes."""

    def __init__(self, sink: OutputStream, schema: Schema, metadata: Mapping[str, str]) -> None:
        self._sink = sink
        arrow = schema_to_arrow(schema)
        self._collector = MetricsCollector(arrow)
        # Buffers are compressed one by one; a reader learns it from the file.
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        self._writer = pa.ipc.new_file(sink, arrow.with_metadata(dict(metadata)), options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        self._collector.update(batch)
        self._writer.write_batch(batch)

    @property
    def estimated_size(self) -> int:
        return self._sink.tell()

    def close(self) -> WrittenFile:
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        return WrittenFile(size, self._collector.metrics())

    def abort(self) -> None:
        self._sink.abort()


def _with_positions(batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
    positions = pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64))
    return batch.append_column(pa.field("_pos", pa.int64(), nullable=False), positions)

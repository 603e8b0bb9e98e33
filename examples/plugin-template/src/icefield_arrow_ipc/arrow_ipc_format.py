"""Arrow IPC files, by field id.

Arrow keeps a field's metadata, and with it the field ids, so that a file needs no schema besides its own. The format
declares no ability: it reads whole files, in record batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from icefield import Schema
from icefield.abc import FileFormat, FormatReader, FormatWriter, InputFile, OutputStream, ReadRequest, WrittenFile
from icefield.toolkit import (
    Metrics,
    MetricsCollector,
    bounded,
    conform,
    reporting_damage,
    schema_to_arrow,
    validate_full,
    with_positions,
)


class ArrowIpcFormat(FileFormat):
    """The file format ``arrow-ipc``."""

    name = "arrow-ipc"
    extension = "arrow"
    magic = b"ARROW1"

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
            with reporting_damage(location, "the footer"):
                self._file = pa.ipc.open_file(source.arrow_file())
        except BaseException:
            source.close()
            raise

    @property
    def schema(self) -> pa.Schema:
        return self._file.schema.remove_metadata()

    @property
    def metadata(self) -> Mapping[str, bytes]:
        return {key.decode(): value for key, value in (self._file.schema.metadata or {}).items()}

    def read(self, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        row = 0
        for number in range(self._file.num_record_batches):
            with reporting_damage(self._location, f"record batch {number}"):
                whole = self._file.get_batch(number)
                for column in whole.columns:
                    validate_full(column)
                wanted = conform(whole, request.columns)
            for batch in bounded([wanted], request.batch_rows):
                yield with_positions(batch, row) if request.positions else batch
                row += batch.num_rows

    def metrics(self) -> Metrics:
        rows = sum(self._file.get_batch(i).num_rows for i in range(self._file.num_record_batches))
        return Metrics(record_count=rows)

    def close(self) -> None:
        self._source.close()


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

"""The file format ``records``: one MessagePack map a row, each after its length, in frames with checksums.

A file is the magic bytes and a sequence of frames. A frame is a header (kind, number of rows, size, CRC-32 of header
and payload) and its payload. The kinds are, in this order: one ``S`` with the schema, any number of ``R`` with rows,
one ``E`` with the data that a reader needs before it reads rows. The last eight bytes of the file state where ``E``
starts.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any
from zlib import crc32

import msgspec
import pyarrow as pa
from icefield import Schema
from icefield.abc import FileFormat, FormatAbility, FormatReader, FormatWriter, InputFile, OutputStream, WrittenFile
from icefield.metadata import Property, get_int
from icefield.toolkit import (
    Block,
    BlockReader,
    Metrics,
    MetricsCollector,
    from_rows,
    metrics_from_json,
    metrics_to_json,
    reporting_damage,
    schema_from_json,
    schema_to_arrow,
    schema_to_json,
    to_rows,
)

MAGIC = b"RECORDS1"
HEADER = struct.Struct("<cQQI")
LENGTH = struct.Struct("<I")
PLACE = struct.Struct("<Q")
FRAME_ROWS = Property("write.records.frame-rows", int, 5_000, "Rows of a frame.", minimum=1)


def packed(kind: pa.DataType) -> Any:
    """The conversion to MessagePack, which has no decimals but all other types of a row."""
    return str if pa.types.is_decimal(kind) else None


def unpacked(kind: pa.DataType) -> Any:
    """The inverse of ``packed``."""
    return Decimal if pa.types.is_decimal(kind) else None


def frame(kind: bytes, rows: int, payload: bytes) -> bytes:
    """A frame: its header and its payload."""
    bare = HEADER.pack(kind, rows, len(payload), 0)
    return HEADER.pack(kind, rows, len(payload), crc32(payload, crc32(bare))) + payload


class RecordsFormat(FileFormat):
    """The file format ``records``."""

    name = "records"
    extension = "records"
    magic = MAGIC
    abilities = frozenset({FormatAbility.SPLITS, FormatAbility.FILTERS})

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> FormatReader:
        return RecordsReader(source, location)

    def open_writer(
        self,
        sink: OutputStream,
        schema: Schema,
        *,
        properties: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> FormatWriter:
        return RecordsWriter(sink, schema, get_int(properties or {}, FRAME_ROWS), metadata or {})


class RecordsWriter(FormatWriter):
    """Gathers rows, and writes a frame when there are enough."""

    def __init__(self, sink: OutputStream, schema: Schema, frame_rows: int, metadata: Mapping[str, str]) -> None:
        self._sink, self._schema, self._frame_rows = sink, schema, frame_rows
        self._arrow = schema_to_arrow(schema)
        self._file_metrics = MetricsCollector(self._arrow)
        self._frames: list[dict[str, Any]] = []
        self._size = 0
        self._put(MAGIC)
        head = {"schema": schema_to_json(schema), "metadata": dict(metadata)}
        self._put(frame(b"S", 0, msgspec.msgpack.encode(head)))
        self._begin_frame()

    def write(self, batch: pa.RecordBatch) -> None:
        self._file_metrics.update(batch)
        start = 0
        while start < batch.num_rows:
            part = batch.slice(start, self._frame_rows - self._rows)
            self._frame_metrics.update(part)
            for row in to_rows(part, packed):
                record = msgspec.msgpack.encode(row)
                self._records += LENGTH.pack(len(record)) + record
            self._rows += part.num_rows
            start += part.num_rows
            if self._rows == self._frame_rows:
                self._end_frame()

    @property
    def estimated_size(self) -> int:
        return self._size + len(self._records)

    def close(self) -> WrittenFile:
        self._end_frame()
        metrics = self._file_metrics.metrics()
        place = self._size
        end = {"frames": self._frames, "metrics": metrics_to_json(metrics, self._schema)}
        self._put(frame(b"E", 0, msgspec.msgpack.encode(end)))
        self._put(PLACE.pack(place))
        self._sink.close()
        return WrittenFile(self._size, metrics, [told["offset"] for told in self._frames] or None)

    def abort(self) -> None:
        self._sink.abort()

    def _begin_frame(self) -> None:
        self._records, self._rows, self._frame_metrics = bytearray(), 0, MetricsCollector(self._arrow)

    def _end_frame(self) -> None:
        if not self._rows:
            return
        metrics = metrics_to_json(self._frame_metrics.metrics(), self._schema)
        self._frames.append({"offset": self._size, "rows": self._rows, "metrics": metrics})
        self._put(frame(b"R", self._rows, bytes(self._records)))
        self._begin_frame()

    def _put(self, data: bytes) -> None:
        self._sink.write(data)
        self._size += len(data)


class RecordsReader(BlockReader):
    """Reads the frames that the last frame of the file lists."""

    errors = (msgspec.MsgspecError, struct.error)

    def __init__(self, source: InputFile, location: str) -> None:
        self._source, self.location = source, location
        try:
            with reporting_damage(location, "the end of the file", *self.errors):
                self._open()
        except BaseException:
            source.close()
            raise

    def _open(self) -> None:
        self._file_size = self._source.seek(0, 2)
        if self._bytes(0, len(MAGIC)) != MAGIC:
            raise ValueError("it does not begin as a file of records does")
        last = self._file_size - PLACE.size
        (place,) = PLACE.unpack(self._bytes(last, PLACE.size))
        _, payload, stop = self._frame(b"E", place)
        if stop != last:
            raise ValueError("the last frame does not reach to the end")
        end = msgspec.msgpack.decode(payload)
        _, payload, first = self._frame(b"S", len(MAGIC))
        head = msgspec.msgpack.decode(payload)
        self._table_schema = schema_from_json(head["schema"])
        self._metadata = {key: value.encode() for key, value in head["metadata"].items()}
        self._blocks = [Block(told["offset"], told["rows"]) for told in end["frames"]]
        offsets = [first - 1, *(block.offset for block in self._blocks), place]
        if offsets != sorted(set(offsets)):
            raise ValueError("frames overlap")
        self._block_metrics = [metrics_from_json(told["metrics"], self._table_schema) for told in end["frames"]]
        self._metrics = metrics_from_json(end["metrics"], self._table_schema)

    def _bytes(self, start: int, size: int) -> bytes:
        if start < 0 or size < 0 or start + size > self._file_size:
            raise ValueError("a part of the file is outside of it")
        self._source.seek(start)
        data = self._source.read(size)
        if len(data) != size:
            raise ValueError("the file ends early")
        return data

    def _frame(self, kind: bytes, start: int) -> tuple[int, bytes, int]:
        """The number of rows, the payload, and where the next frame starts."""
        found, rows, size, checksum = HEADER.unpack(self._bytes(start, HEADER.size))
        payload = self._bytes(start + HEADER.size, size)
        if found != kind or crc32(payload, crc32(HEADER.pack(found, rows, size, 0))) != checksum:
            raise ValueError(f"no frame {kind.decode()}, or a changed one, at byte {start}")
        return rows, payload, start + HEADER.size + size

    @property
    def schema(self) -> pa.Schema:
        return schema_to_arrow(self._table_schema)

    @property
    def metadata(self) -> Mapping[str, bytes]:
        return self._metadata

    @property
    def blocks(self) -> Sequence[Block]:
        return self._blocks

    def block_metrics(self) -> Sequence[Metrics]:
        return self._block_metrics

    def read_block(self, number: int, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        block = self._blocks[number]
        rows, payload, _ = self._frame(b"R", block.offset)
        records = list(self._records(payload))
        if not len(records) == rows == block.rows:
            raise ValueError(f"{len(records)} rows instead of {block.rows}")
        yield from_rows(records, columns, unpacked)

    @staticmethod
    def _records(payload: bytes) -> Iterator[dict[str, Any]]:
        start, view = 0, memoryview(payload)
        while start < len(payload):
            (size,) = LENGTH.unpack_from(payload, start)
            start += LENGTH.size
            if start + size > len(payload):
                raise ValueError("a record does not end in its frame")
            yield msgspec.msgpack.decode(view[start : start + size])
            start += size

    def metrics(self) -> Metrics:
        return self._metrics

    def close(self) -> None:
        self._source.close()

"""Writing an Avro file: rows are encoded in columns, cut into blocks, packed and streamed out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
from icefield.abc import FormatWriter, OutputStream, WrittenFile
from icefield.errors import InvalidArgument
from icefield.schema import Schema, schema_to_arrow, schema_to_json
from icefield.toolkit import Metrics, MetricsCollector, MetricsConfig

from icefield_avro.codecs import MAX_INFLATED, codec_of, deflater
from icefield_avro.container import CODEC_KEY, SCHEMA_KEY, SPLIT_EVERY, SYNC_SIZE, encode_header
from icefield_avro.encoding import encode
from icefield_avro.nodes import Record
from icefield_avro.properties import AVRO_BLOCK_SIZE
from icefield_avro.row_bytes import EncodedRows
from icefield_avro.schema_reading import parse_schema
from icefield_avro.schema_writing import DEFAULT_RECORD_NAME, avro_schema
from icefield_avro.varints import Data, encode_long

RECORD_NAME: Final = "avro.record-name"
BLOCK_SIZE: Final = "avro.block-size"
COLLECT_METRICS: Final = "avro.collect-metrics"
DEFAULT_BLOCK_SIZE: Final = 64 * 1024
ICEBERG_SCHEMA: Final = "iceberg.schema"

_CHUNK_BYTES: Final = 4 * 1024 * 1024
_CHUNK_ROWS: Final = 16_384
_SPLIT_EVERY: Final = SPLIT_EVERY
_MOST_ROWS: Final = 131_072  # in a block of records that take no bytes


class BlockCutter:
    """Gathers encoded records and cuts them into blocks of about ``size`` bytes, at least one record each."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.pending_bytes = 0
        self._pending: list[memoryview] = []
        self._rows = 0

    def add(self, rows: EncodedRows) -> Iterator[tuple[int, bytes | memoryview]]:
        """Take records; yield the count and the bytes of each block that became full."""
        starts, data = rows.starts, memoryview(rows.data)
        last = len(starts) - 1
        at = 0
        while at < last:
            room = int(starts[at]) + self.size - self.pending_bytes
            end = int(np.searchsorted(starts, room, side="left"))
            full = end <= last
            end = max(min(end, last), at + (0 if self._rows else 1))
            piece = data[int(starts[at]) : int(starts[end])]
            self._pending.append(piece)
            self._rows += end - at
            self.pending_bytes += len(piece)
            at = end
            if full or self._rows >= _MOST_ROWS:
                yield self.cut()

    def cut(self) -> tuple[int, bytes | memoryview]:
        """Return the count and the bytes of the pending records, and clear them."""
        count, body = self._rows, self._pending[0] if len(self._pending) == 1 else b"".join(self._pending)
        self._pending, self._rows, self.pending_bytes = [], 0, 0
        return count, body

    def __bool__(self) -> bool:
        return self._rows > 0


@lru_cache(maxsize=128)
def compiled(schema: Schema, record_name: str = DEFAULT_RECORD_NAME) -> tuple[bytes, Record, pa.Schema]:
    """The Avro schema of a schema, as a string and as nodes, and its Arrow form."""
    string = json.dumps(avro_schema(schema, record_name), separators=(",", ":")).encode()
    return string, parse_schema(string), schema_to_arrow(schema)


def conformed(batch: pa.RecordBatch, arrow: pa.Schema) -> pa.RecordBatch:
    """The batch in exactly the types of a schema. Raises ``InvalidArgument`` when it has other columns."""
    if batch.schema.equals(arrow):
        return batch
    if batch.schema.names != arrow.names:
        raise InvalidArgument(f"the file's columns are {arrow.names}, the batch's {batch.schema.names}")
    try:
        columns = [
            column if _fits(column.type, field.type) else column.cast(field.type)
            for column, field in zip(batch.columns, arrow, strict=True)
        ]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidArgument(f"a batch that does not fit the schema of the file: {error}") from None
    return pa.RecordBatch.from_arrays(columns, names=arrow.names)


def _fits(given: pa.DataType, written: pa.DataType) -> bool:
    """Whether values can be encoded as they are: they have the type of the schema, or are encoded maps."""
    if pa.types.is_struct(given) and pa.types.is_struct(written) and given.num_fields == written.num_fields:
        return all(
            one.name == other.name and _fits(one.type, other.type) for one, other in zip(given, written, strict=True)
        )
    return given.equals(written) or (pa.types.is_binary(given) and _can_be_encoded(written))


def _can_be_encoded(kind: pa.DataType) -> bool:
    """Whether a writer takes the encoding of a map in its place."""
    t = pa.types
    if not t.is_map(kind) or not t.is_integer(kind.key_type):
        return False
    return bool(t.is_integer(kind.item_type) or t.is_binary(kind.item_type))


class AvroWriter(FormatWriter):
    """Writes one Avro file. Maps of integers to integers or bytes may be given as the encoding that a reader gave.

    Properties: ``write.avro.compression-codec`` (``gzip`` unless said otherwise, ``zstd``, ``snappy``,
    ``uncompressed``), ``write.avro.compression-level``, ``write.avro.block-size-bytes`` or ``avro.block-size``
    (bytes before packing, 64 KiB), ``avro.record-name`` (``table``) and ``avro.collect-metrics`` (``true`` where
    records are named ``table``).
    """

    def __init__(
        self, sink: OutputStream, schema: Schema, properties: Mapping[str, str], metadata: Mapping[str, str]
    ) -> None:
        record_name = properties.get(RECORD_NAME, DEFAULT_RECORD_NAME)
        is_data = record_name == DEFAULT_RECORD_NAME
        codec, level = codec_of(properties)
        string, self._record, self._arrow = compiled(schema, record_name)
        self._deflate = deflater(codec, level)
        self._cutter = BlockCutter(_block_size(properties))
        collect = properties.get(COLLECT_METRICS, "true" if is_data else "false").strip().lower() == "true"
        omitted = MetricsConfig.from_properties(properties, schema).omitted(schema) if collect else ()
        self._collector = MetricsCollector(self._arrow, omitted) if collect else None
        self._rows = 0
        self._sink = sink
        self._sync = os.urandom(SYNC_SIZE)
        header = {CODEC_KEY: codec.encode(), SCHEMA_KEY: string}
        if is_data and ICEBERG_SCHEMA not in metadata:
            header[ICEBERG_SCHEMA] = json.dumps(schema_to_json(schema), separators=(",", ":")).encode()
        header |= {key: value.encode() for key, value in metadata.items()}
        head = encode_header(header, self._sync)
        self._written = len(head)
        # Other readers look for the sync marker from an offset on, and take the block after it. So the offset of a
        # block is the offset of the marker before it; otherwise readers would skip the block.
        self._split_offsets = [len(head) - SYNC_SIZE]
        self._ratio = 1.0
        sink.write(head)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows. Raises ``InvalidArgument`` for columns of other types, or a null in a required one."""
        batch = conformed(batch, self._arrow)
        for piece in _pieces(batch):
            rows = encode(self._record, piece.columns, piece.num_rows)
            for count, body in self._cutter.add(rows):
                self._put(count, body)
        if batch.schema.types != self._arrow.types:
            self._collector = None  # nothing is known of the values in encoded maps
        if self._collector is not None:
            self._collector.update(batch)
        self._rows += batch.num_rows

    def _put(self, count: int, body: bytes | memoryview) -> None:
        if len(body) > MAX_INFLATED:
            raise InvalidArgument(f"a row of more than {MAX_INFLATED:,} bytes does not go into an Avro file")
        if self._written - self._split_offsets[-1] >= _SPLIT_EVERY:
            self._split_offsets.append(self._written - SYNC_SIZE)
        block = encode_block(count, self._deflate(body), self._sync)
        if body:
            self._ratio = len(block) / len(body)
        self._sink.write(block)
        self._written += len(block)

    @property
    def estimated_size(self) -> int:
        """The bytes written, plus the pending bytes at the compression ratio of the last block."""
        return self._written + int(self._cutter.pending_bytes * min(self._ratio, 1.0))

    def close(self) -> WrittenFile:
        """Write the last block and publish the file. ``column_sizes`` stay empty: rows are together."""
        if self._cutter:
            self._put(*self._cutter.cut())
        self._sink.close()
        metrics = Metrics(self._rows) if self._collector is None else self._collector.metrics()
        return WrittenFile(self._written, metrics, self._split_offsets if self._rows else None)

    def abort(self) -> None:
        """Give the file up."""
        self._sink.abort()


def encode_block(count: int, packed: Data, sync: bytes) -> bytes:
    """A block as it is in the file."""
    return b"".join((encode_long(count), encode_long(len(packed)), packed, sync))


def _block_size(properties: Mapping[str, str]) -> int:
    name = BLOCK_SIZE if BLOCK_SIZE in properties else AVRO_BLOCK_SIZE.name
    string = str(properties.get(name, DEFAULT_BLOCK_SIZE))
    if not string.isdecimal() or not 1 <= int(string) <= MAX_INFLATED:
        raise InvalidArgument(f"{name} is {string[:20]!r}; it is a number of bytes up to {MAX_INFLATED:,}")
    return int(string)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in pieces of a few MiB at most, which stay in the processor's cache while they are encoded."""
    rows = batch.num_rows
    if not rows:
        return
    each = max(1, min(_CHUNK_ROWS, rows * _CHUNK_BYTES // max(batch.nbytes, 1)))
    for start in range(0, rows, each):
        yield batch.slice(start, each)

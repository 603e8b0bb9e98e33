"""A file format by rows, written as its author would: JSON lines, with public names alone.

A file is a line for the schema and the key-value metadata, a line for each row, a line that states where blocks of rows
start (the footer), and a line of fixed length that states where the footer starts. Each line is JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any
from zlib import crc32

import pyarrow as pa
from icefield import Schema
from icefield.abc import (
    FileFormat,
    FormatAbility,
    FormatReader,
    FormatWriter,
    InputFile,
    OutputStream,
    WrittenFile,
)
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
    whole_number,
)

BLOCK_ROWS = "write.json-lines.block-rows"
END_SIZE = 28


class JsonLinesFormat(FileFormat):
    """The file format ``json-lines``."""

    name = "json-lines"
    extension = "jsonl"
    abilities = frozenset({FormatAbility.SPLITS, FormatAbility.FILTERS})

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> FormatReader:
        return JsonLinesReader(source, location)

    def open_writer(
        self,
        sink: OutputStream,
        schema: Schema,
        *,
        properties: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> FormatWriter:
        block_rows = whole_number(properties or {}, BLOCK_ROWS, 10_000, 1)
        return JsonLinesWriter(sink, schema, block_rows, metadata or {})


def to_json(kind: pa.DataType) -> Any:
    """Return a conversion of values that JSON lacks to strings: bytes, decimals, and floats that are not finite."""
    if is_bytes(kind):
        return bytes.hex
    if pa.types.is_decimal(kind):
        return str
    if pa.types.is_floating(kind):
        return lambda value: value if math.isfinite(value) else repr(value)
    return None


def from_json(kind: pa.DataType) -> Any:
    """The inverse of ``to_json``."""
    if is_bytes(kind):
        return bytes.fromhex
    if pa.types.is_decimal(kind):
        return Decimal
    return float if pa.types.is_floating(kind) else None


def is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind)


def line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


class JsonLinesWriter(FormatWriter):
    """Writes blocks of rows, with a checksum and metrics for each."""

    def __init__(self, sink: OutputStream, schema: Schema, block_rows: int, metadata: Mapping[str, str]) -> None:
        self._sink, self._schema, self._block_rows = sink, schema, block_rows
        self._arrow = schema_to_arrow(schema)
        self._all = MetricsCollector(self._arrow)
        self._blocks: list[dict[str, Any]] = []
        self._begin_block()
        self._head = line({"schema": schema_to_json(schema), "metadata": dict(metadata)})
        self._size = self._put(self._head)

    def write(self, batch: pa.RecordBatch) -> None:
        self._all.update(batch)
        start = 0
        while start < batch.num_rows:
            part = batch.slice(start, self._block_rows - self._rows)
            self._block.update(part)
            self._lines += b"".join(map(line, to_rows(part, to_json)))
            self._rows += part.num_rows
            start += part.num_rows
            if self._rows == self._block_rows:
                self._end_block()

    @property
    def estimated_size(self) -> int:
        return self._size + len(self._lines)

    def close(self) -> WrittenFile:
        self._end_block()
        metrics = self._all.metrics()
        stated = {"head": crc32(self._head), "metrics": metrics_to_json(metrics, self._schema)}
        footer = line({**stated, "blocks": self._blocks})
        end = line(f"{self._size:016x} {crc32(footer):08x}")
        self._size += self._put(footer) + self._put(end)
        self._sink.close()
        return WrittenFile(self._size, metrics, [block["offset"] for block in self._blocks] or None)

    def abort(self) -> None:
        self._sink.abort()

    def _begin_block(self) -> None:
        self._lines, self._rows, self._block = bytearray(), 0, MetricsCollector(self._arrow)

    def _end_block(self) -> None:
        if self._rows:
            stated = {"offset": self._size, "size": len(self._lines), "rows": self._rows, "crc": crc32(self._lines)}
            self._blocks.append({**stated, "metrics": metrics_to_json(self._block.metrics(), self._schema)})
            self._size += self._put(bytes(self._lines))
            self._begin_block()

    def _put(self, data: bytes) -> int:
        return self._sink.write(data)


class JsonLinesReader(BlockReader):
    """Reads the blocks that the footer states."""

    def __init__(self, source: InputFile, location: str) -> None:
        self._source, self.location = source, location
        try:
            with reporting_damage(location, "the footer"):
                self._read_footer(source.size)
        except BaseException:
            source.close()
            raise

    def _read_footer(self, size: int) -> None:
        end = self._range(max(0, size - END_SIZE), END_SIZE)
        place, checksum = (int(number, 16) for number in json.loads(end).split())
        stated = json.loads(self._range(place, size - END_SIZE - place, checksum))
        self._places = stated["blocks"]
        self._blocks = [Block(place["offset"], place["rows"]) for place in self._places]
        head = json.loads(self._range(0, self._blocks[0].offset if self._blocks else place, stated["head"]))
        self._table_schema = schema_from_json(head["schema"])
        self._metadata = {key: value.encode() for key, value in head["metadata"].items()}
        self._block_metrics = [metrics_from_json(place["metrics"], self._table_schema) for place in self._places]
        self._metrics = metrics_from_json(stated["metrics"], self._table_schema)

    def _range(self, start: int, size: int, checksum: int | None = None) -> bytes:
        if start < 0 or size < 0:
            raise ValueError("a part of the file is outside of it")
        data = self._source.read_at(start, size)
        if checksum is not None and crc32(data) != checksum:
            raise ValueError("bytes were changed: their checksum is another one")
        return data

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
        place = self._places[number]
        lines = self._range(place["offset"], place["size"], place["crc"])
        yield from_rows([json.loads(row) for row in lines.splitlines()], columns, from_json)

    def metrics(self) -> Metrics:
        return self._metrics

    def close(self) -> None:
        self._source.close()

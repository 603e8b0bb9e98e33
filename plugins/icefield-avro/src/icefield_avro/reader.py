"""Reading an Avro file: blocks are gathered into groups, and each group is decoded into one batch or a few."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from threading import local
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from icefield.abc import FormatReader, ManifestFormatReader, ManifestReadRequest, ReadRequest, Split
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.toolkit import Metrics

from icefield_avro.codecs import inflater
from icefield_avro.container import SCHEMA_KEY, SPLIT_EVERY, SYNC_SIZE, Container
from icefield_avro.decoding import Decoder
from icefield_avro.nodes import Record, minimum_size
from icefield_avro.schema_reading import arrow_schema, parse_schema
from icefield_avro.single_records import single_records
from icefield_avro.varints import Data, Malformed
from icefield_avro.vectorized import Memory

GROUP_BYTES: Final = 8 * 1024 * 1024
"""Blocks are decoded together until they make up this many bytes, inflated."""

GROUP_ROWS: Final = 262_144

MAX_EMPTY_RECORDS: Final = 1 << 20
"""The most records that a block may claim to hold when a record may take no byte at all."""

MAX_EMPTY_RECORDS_OF_FILE: Final = 1 << 28
"""As ``MAX_EMPTY_RECORDS``, of all blocks together: twenty bytes of a block would stand for a million rows each."""

_MOST_TOGETHER: Final = 256 * 1024 * 1024
"""Files that inflate to more bytes are read apart, a group of blocks at a time."""

_MOST_TIMES: Final = 256
"""How many times its size a file may hold that is read among others, beyond ``_MOST_TOGETHER``."""

_WORTH_A_THREAD: Final = 16 * 1024

_KEPT: Final = local()
"""The memory of a thread in which it decoded files together, for the next ones."""

_POSITION: Final = pa.field("_pos", pa.int64(), nullable=False)


@dataclass(slots=True)
class Group:
    """Inflated blocks with their record counts, where they start in the file, and how many rows came before."""

    first_row: int
    payloads: list[Data] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    size: int = 0
    rows: int = 0


class _Inflated(NamedTuple):
    """A block: its bytes, the number of its records, and where it starts in the file."""

    payload: Data
    records: int
    offset: int


class AvroReader(ManifestFormatReader):
    """An open Avro file."""

    def __init__(self, container: Container) -> None:
        self._container = container
        string = container.header.metadata.get(SCHEMA_KEY)
        if string is None:
            raise container.invalid("the header holds no schema")
        try:
            self.record: Record = parse_schema(string)
            self._inflate = inflater(container.header.codec)
        except Malformed as error:
            raise container.invalid(str(error)) from None
        except UnsupportedFeature as error:
            message = f"{container.location} cannot be read: {error.message}"
            raise UnsupportedFeature(message, location=container.location) from None
        self._minimum = minimum_size(self.record)
        self._prepared: tuple[list[_Inflated], Iterator[_Inflated]] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The file's own schema, with the ids that stand in it."""
        return arrow_schema(self.record)

    @property
    def metadata(self) -> Mapping[str, bytes]:
        """The header's metadata, ``avro.schema`` and ``avro.codec`` included."""
        return self._container.header.metadata

    @property
    def location(self) -> str:
        """Where the file is, for messages."""
        return self._container.location

    def read(self, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """Yield the asked-for columns. Raises ``InvalidFile``; ``InvalidArgument`` for columns that are not there."""
        if request.batch_rows < 1:
            raise InvalidArgument("batch_rows must be at least 1")
        decoder = Decoder(self.record, request.columns, _map_keys(request))
        return self._batches(request, decoder)

    def _batches(self, request: ReadRequest, decoder: Decoder) -> Iterator[pa.RecordBatch]:
        for group in self.groups(request.split, request.positions):
            for rows, first in self._decode(decoder, group):
                for start in range(0, len(rows), request.batch_rows):
                    piece = rows.slice(start, request.batch_rows)
                    yield to_batch(piece, request.columns, first + start if request.positions else None)

    def _decode(self, decoder: Decoder, group: Group) -> Iterator[tuple[pa.Array, int]]:
        try:
            first = group.first_row
            if self._minimum == 0 and not group.size:
                # Records without bytes are all equal.
                (row,) = decoder.decode([b""], [1])
                yield row.take(pa.array(np.zeros(group.rows, np.int32))), first
                return
            for rows in decoder.decode(group.payloads, group.counts):
                yield rows, first
                first += len(rows)
        except Malformed as error:
            place = group.offsets[decoder.failed_block]
            raise self._container.invalid(f"in the block at byte {place:,}: {error}") from None

    def prepare(self, limit: int) -> None:
        """Inflate blocks up to about ``limit`` bytes ahead, for the next read of the whole file.

        It stops at a small block: switching between threads for small blocks costs more than it saves.
        """
        if self._prepared is None:
            rest = self._inflated(self._container.header.size, None)
            ahead = []
            for block in rest:
                ahead.append(block)
                limit -= len(block.payload)
                if len(block.payload) < _WORTH_A_THREAD:
                    return
                if limit <= 0:
                    break
            self._prepared = ahead, rest

    def groups(self, split: Split | None = None, positions: bool = False) -> Iterator[Group]:
        """The blocks, inflated. Raises ``InvalidFile``."""
        if self._minimum == 0 and (claimed := self._rows_before(self._container.size)) > MAX_EMPTY_RECORDS_OF_FILE:
            raise self._container.invalid(f"its blocks claim {claimed:,} records that take no byte")
        if split is None:
            yield from self._groups_of_all()
            return
        start = self._container.first_block(split.start)
        if start is not None:
            blocks = self._inflated(start, split.start + split.length)
            yield from _grouped(blocks, self._rows_before(start) if positions else 0)

    def _groups_of_all(self) -> Iterator[Group]:
        if self._prepared is not None:
            blocks = chain(*self._prepared)
            self._prepared = None
            return _grouped(blocks, 0)
        single = single_records(self._container)
        if single is not None:
            return self._groups_of_single_records(*single)
        return _grouped(self._inflated(self._container.header.size, None), 0)

    def _groups_of_single_records(self, blocks: list[bytes], offsets: list[int]) -> Iterator[Group]:
        group = Group(0, offsets=offsets)
        inflate, payloads, size = self._inflate, group.payloads, 0
        for number, block in enumerate(blocks, 1):
            try:
                payload = inflate(block)
            except Malformed:
                payload = b""
            if len(payload) < self._minimum or not payload:
                payload = self._payload(block, 1, offsets[number - 1])  # raises the exact error
            payloads.append(payload)
            size += len(payload)
            if size >= GROUP_BYTES or number == len(blocks):
                group.rows = len(payloads)
                group.counts = [1] * group.rows
                yield group
                group = Group(number, offsets=offsets[number:])
                payloads, size = group.payloads, 0

    def _inflated(self, start: int, stop: int | None) -> Iterator[_Inflated]:
        """The blocks that hold records. Raises ``InvalidFile``."""
        for block in self._container.blocks(start, stop):
            payload = self._payload(block.payload, block.records, block.offset)
            if block.records:
                yield _Inflated(payload, block.records, block.offset)

    def _payload(self, packed: bytes | memoryview, count: int, offset: int) -> Data:
        try:
            payload = self._inflate(packed)
        except Malformed as error:
            raise self._container.invalid(f"in the block at byte {offset:,}: {error}") from None
        if count * self._minimum > len(payload) or (self._minimum == 0 and count > MAX_EMPTY_RECORDS):
            reason = f"the block at byte {offset:,} claims {count:,} records in {len(payload):,} bytes"
            raise self._container.invalid(reason)
        if count == 0 and payload:
            raise self._container.invalid(f"the block at byte {offset:,} claims no record in {len(payload):,} bytes")
        return payload

    def _rows_before(self, start: int) -> int:
        """The number of rows in the blocks before ``start``, from their headers."""
        return sum(block.records for block in self._container.blocks(stop=start, payloads=False))

    @property
    def split_offsets(self) -> list[int] | None:
        """The positions of the markers before some of the blocks, as a writer states them. Raises ``InvalidFile``."""
        found: list[int] = []
        for block in self._container.blocks(payloads=False):
            if not found or block.offset - found[-1] >= SPLIT_EVERY:
                found.append(block.offset - SYNC_SIZE)
        return found or None

    def metrics(self) -> Metrics:
        """The number of records, from the headers of the blocks: an Avro file states nothing else."""
        return Metrics(record_count=self._rows_before(self._container.size))

    def close(self) -> None:
        """Close the input."""
        self._container.close()


def _grouped(blocks: Iterable[_Inflated], first_row: int) -> Iterator[Group]:
    group = Group(first_row)
    for payload, records, offset in blocks:
        group.payloads.append(payload)
        group.counts.append(records)
        group.offsets.append(offset)
        group.size += len(payload)
        group.rows += records
        if group.size >= GROUP_BYTES or group.rows >= GROUP_ROWS:
            yield group
            group = Group(group.first_row + group.rows)
    if group.rows:
        yield group


def _map_keys(request: ReadRequest) -> Mapping[int, frozenset[int]]:
    return request.map_keys if isinstance(request, ManifestReadRequest) else {}


def read_together(readers: Sequence[AvroReader], request: ReadRequest) -> list[list[pa.RecordBatch]] | None:
    """The batches of each file; None where the files must be read apart: another schema, positions, or damage."""
    if not readers or request.positions or request.split is not None:
        return None
    record = readers[0].record
    if any(reader.record is not record for reader in readers):
        return None
    payloads: list[Data] = []
    counts: list[int] = []
    rows_of = []
    held = 0
    for reader in readers:
        before = len(counts)
        for group in reader.groups():
            held += sum(map(len, group.payloads))
            if held > _MOST_TOGETHER:
                return None
            payloads += group.payloads
            counts += group.counts
        rows_of.append(sum(counts[before:]))
    memory = getattr(_KEPT, "memory", None) or Memory()
    _KEPT.memory = memory if sum(map(len, payloads)) <= GROUP_BYTES * 2 else None
    decoder = Decoder(record, request.columns, _map_keys(request), memory)
    try:
        parts = list(decoder.decode(payloads, counts)) if counts else []
    except Malformed:
        return None  # read apart, the damaged file is named
    return [
        [to_batch(rows, request.columns, None) for rows in pieces if len(rows)] for pieces in _dealt(parts, rows_of)
    ]


def read_apart(readers: Sequence[FormatReader], request: ReadRequest) -> list[list[pa.RecordBatch]]:
    """The batches of each file. Raises ``InvalidFile`` for a small file that holds very many bytes of rows."""
    return [
        _bounded(reader, request) if isinstance(reader, AvroReader) else [*reader.read(request)] for reader in readers
    ]


def _bounded(reader: AvroReader, request: ReadRequest) -> list[pa.RecordBatch]:
    size = reader._container.size
    most = max(_MOST_TOGETHER, _MOST_TIMES * size)
    found, held = [], 0
    for batch in reader.read(request):
        held += batch.nbytes
        if held > most:
            raise reader._container.invalid(f"{size:,} bytes hold more than {most:,}, which is refused")
        found.append(batch)
    return found


def _dealt(parts: list[pa.Array], rows_of: list[int]) -> Iterator[list[pa.Array]]:
    """The parts, cut so that each file gets its number of rows."""
    left = deque(parts)
    for wanted in rows_of:
        pieces = []
        while wanted:
            head = left.popleft()
            if len(head) > wanted:
                left.appendleft(head.slice(wanted))
                head = head.slice(0, wanted)
            pieces.append(head)
            wanted -= len(head)
        yield pieces


def to_batch(rows: pa.Array, columns: pa.Schema, first_row: int | None) -> pa.RecordBatch:
    """The batch of a struct array; ``first_row``, when given, adds the column of positions."""
    if first_row is None and not len(columns):
        return pa.RecordBatch.from_struct_array(rows)
    arrays = [rows.field(place) for place in range(len(columns))]
    if first_row is not None:
        arrays.append(pa.array(range(first_row, first_row + len(rows)), pa.int64()))
        columns = columns.append(_POSITION)
    return pa.RecordBatch.from_arrays(arrays, schema=columns)

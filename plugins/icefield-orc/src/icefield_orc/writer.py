"""Writing an ORC file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.orc as po
from icefield.abc import FormatWriter, OutputStream, WrittenFile
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import MetricsCollector, MetricsConfig
from icefield.types import IcebergType, TimestampNanoType, TimestampType, TimestamptzNanoType, TimestamptzType

from icefield_orc.early_timestamps import holds_old_fraction
from icefield_orc.options import write_options
from icefield_orc.schema import COLUMN_IDS
from icefield_orc.sink import OrcSink
from icefield_orc.storage import column_ids, column_numbers, storage_batch, storage_schema, types_of

_MOMENTS = (TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType)
_BUFFER = 1 << 20
_MAGIC_SIZE = 3
"""Bytes at the start of a file, before its first stripe."""

_FIRST_GUESS = 0.5
"""Bytes of a file for a byte of Arrow, until the first stripe has shown it."""


class OrcWriter(FormatWriter):
    """An ORC file that is being written. Not for use by several threads at once."""

    def __init__(
        self, sink: OutputStream, schema: Schema, properties: Mapping[str, str], metadata: Mapping[str, str]
    ) -> None:
        self._schema = schema
        self._arrow_schema = schema_to_arrow(schema)
        self._storage = storage_schema(schema)
        self._has_timestamps = any(isinstance(kind, _MOMENTS) for kind in _kinds(schema))
        self._metadata = {key: value.encode() for key, value in metadata.items()}
        ids = column_ids(self._storage)
        if ids is not None:
            self._metadata[COLUMN_IDS] = ids.encode()
        options = write_options(properties, column_numbers(schema, self._storage))
        omitted = MetricsConfig.from_properties(properties, schema).omitted(schema)
        self._collector = MetricsCollector(self._arrow_schema, omitted)
        self._sink = OrcSink(sink, 1 + sum(1 for _ in types_of(self._storage)))
        self._piece_bytes = max(1, options["stripe_size"] // 4)
        self._piece_rows = options["batch_size"]
        self._early_timestamps = False
        self._given_bytes = 0
        self._stripe_given_bytes = 0
        self._shown_bytes = 0
        self._shown_given = 0
        self._estimate = 0
        self._ended = False
        # Fewer and larger writes: each takes Python's lock from the other threads that encode.
        self._buffered = pa.BufferedOutputStream(pa.PythonFile(self._sink, mode="w"), _BUFFER)
        self._writer = po.ORCWriter(self._buffered, **options)
        self._begun = False

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows. Raises ``InvalidArgument`` for a batch of another schema."""
        if self._ended:
            raise ValueError("write to an ORC file that was closed or aborted")
        if not batch.schema.equals(self._arrow_schema):
            raise InvalidArgument(
                f"the batch is not of the file's schema: {batch.schema} instead of {self._arrow_schema}"
            )
        if batch.num_rows:
            self._collector.update(batch)
            self._put(batch)

    @property
    def estimated_size(self) -> int:
        written = self._sink.tell() if self._ended else self._buffered.tell()
        if written > self._shown_bytes and not self._ended:
            self._shown_bytes, self._shown_given = written, self._given_bytes
        pending = 0 if self._ended else self._given_bytes - self._shown_given
        self._estimate = max(self._estimate, written + int(pending * self._ratio))
        return self._estimate

    @property
    def buffered_bytes(self) -> int:
        # pyarrow's writer holds the unfinished stripe in encoded form, and has no method to end it.
        return 0 if self._ended else int(self._stripe_given_bytes * self._ratio)

    @property
    def _ratio(self) -> float:
        """The estimated number of bytes in the file for each byte of Arrow data."""
        known = self._shown_given and self._shown_bytes > _MAGIC_SIZE
        return self._shown_bytes / self._shown_given if known else _FIRST_GUESS

    def close(self) -> WrittenFile:
        if self._ended:
            raise ValueError("an ORC file is closed once")
        try:
            if not self._begun:
                self._put(pa.RecordBatch.from_pylist([], self._arrow_schema))
            self._hold()
            self._writer.close()
            self._buffered.flush()
            tail, sizes = self._sink.complete(self._metadata, self._early_timestamps)
            self._sink.publish()
        except BaseException:
            self.abort()
            raise
        self._ended = True
        metrics = replace(self._collector.metrics(), column_sizes=sizes)
        return WrittenFile(tail.size, metrics, [stripe.start for stripe in tail.stripes] or None)

    def abort(self) -> None:
        self._ended = True
        self._sink.abort()
        # pyarrow's writer writes the end of its file when it is destroyed: the sink discards these bytes.
        self._writer.is_open = False

    def _put(self, batch: pa.RecordBatch) -> None:
        # The batch is written in pieces so small that at most one stripe ends in each.
        rows = max(self._piece_rows, batch.num_rows * self._piece_bytes // max(1, batch.nbytes))
        for start in range(0, max(1, batch.num_rows), rows):
            self._put_piece(batch.slice(start, rows))
        self._begun = True
        self._given_bytes += batch.nbytes

    def _put_piece(self, batch: pa.RecordBatch) -> None:
        stored = storage_batch(batch, self._schema, self._storage)
        if self._has_timestamps and not self._early_timestamps and _hold_old_fractions(stored):
            self._hold()
            self._early_timestamps = True
        before = self._buffered.tell()
        self._stripe_given_bytes += batch.nbytes
        try:
            self._writer.write(stored)
        except pa.ArrowNotImplementedError as error:
            raise UnsupportedFeature(f"ORC cannot hold this schema: {error}") from error
        if self._buffered.tell() - before > _MAGIC_SIZE:
            self._stripe_given_bytes = 0
        if self._buffered.tell() != before:
            self._buffered.flush()
            self._sink.mark()

    def _hold(self) -> None:
        self._buffered.flush()
        self._sink.hold()


def _hold_old_fractions(table: pa.Table) -> bool:
    return any(holds_old_fraction(chunk) for column in table.columns for chunk in column.chunks)


def _kinds(schema: Schema) -> Iterator[IcebergType]:
    return (field.field_type for field in schema.id_to_field.values())

"""Writing an ORC file."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.orc as po
from icefield.abc import FormatWriter, OutputStream, WrittenFile
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.metrics import MetricsCollector
from icefield.schema import Schema
from icefield.schema_arrow import schema_to_arrow

from icefield_orc.options import write_options
from icefield_orc.schema import COLUMN_IDS
from icefield_orc.sink import Sink
from icefield_orc.storage import column_ids, column_numbers, storage_batch, storage_schema

_BUFFER = 1 << 20
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
        self._metadata = {key: value.encode() for key, value in metadata.items()}
        ids = column_ids(self._storage)
        if ids is not None:
            self._metadata[COLUMN_IDS] = ids.encode()
        options = write_options(properties, column_numbers(schema, self._storage))
        self._collector = MetricsCollector(self._arrow_schema)
        self._sink = Sink(sink)
        self._given_bytes = 0
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
        ratio = self._shown_bytes / self._shown_given if self._shown_given and self._shown_bytes > 3 else _FIRST_GUESS
        pending = 0 if self._ended else self._given_bytes - self._shown_given
        self._estimate = max(self._estimate, written + int(pending * ratio))
        return self._estimate

    def close(self) -> WrittenFile:
        if self._ended:
            raise ValueError("an ORC file is closed once")
        try:
            if not self._begun:
                self._put(pa.RecordBatch.from_pylist([], self._arrow_schema))
            self._buffered.flush()
            self._sink.hold()
            self._writer.close()
            self._buffered.flush()
            tail = self._sink.complete(self._metadata)
            self._sink.publish()
        except BaseException:
            self.abort()
            raise
        self._ended = True
        return WrittenFile(tail.size, self._collector.metrics(), [stripe.start for stripe in tail.stripes] or None)

    def abort(self) -> None:
        self._ended = True
        self._sink.abort()
        # pyarrow's writer ends its file when it is let go: the sink takes those bytes and drops them.
        self._writer.is_open = False

    def _put(self, batch: pa.RecordBatch) -> None:
        try:
            self._writer.write(storage_batch(batch, self._schema, self._storage))
        except pa.ArrowNotImplementedError as error:
            raise UnsupportedFeature(f"ORC cannot hold this schema: {error}") from error
        self._begun = True
        self._given_bytes += batch.nbytes

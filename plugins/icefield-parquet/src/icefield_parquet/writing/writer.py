"""Writing a Parquet file: rows are gathered into row groups by their bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from icefield.abc import FlushingWriter, OutputStream, WrittenFile
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.toolkit import Metrics, MetricsCollector

from icefield_parquet.encryption import encryption
from icefield_parquet.footer import completed_tail
from icefield_parquet.row_groups import row_group_start
from icefield_parquet.variants.shredded_types import has_variants, shredded_types
from icefield_parquet.writing.background import Background
from icefield_parquet.writing.encoding import EncodingChoice
from icefield_parquet.writing.layout import FileLayout, layout_of
from icefield_parquet.writing.options import write_options
from icefield_parquet.writing.sink import ParquetSink
from icefield_parquet.writing.storage import to_storage
from icefield_parquet.writing.string_bounds import StringBounds

_MAX_ROW_GROUP_ROWS = 32 << 20
_BUFFER = 1 << 20
_WORTH_A_THREAD = 50_000
"""From this number of rows on, metrics are collected in a thread while the rows are encoded."""

_FIRST_GUESS = 0.5
"""Bytes of a file for a byte of Arrow, until the first row group has shown it."""


class ParquetWriter(FlushingWriter):
    """A Parquet file that is being written. Not for use by several threads at once."""

    def __init__(
        self,
        sink: OutputStream,
        layout: FileLayout,
        properties: Mapping[str, str],
        metadata: Mapping[str, str],
        omitted: frozenset[int],
        choice: EncodingChoice | None = None,
    ) -> None:
        """Metrics leave out the leaves ``omitted``, by field id. Files with similar rows share ``choice``."""
        self._key = sink.key
        self._sink = ParquetSink(sink)
        # Fewer and larger writes: each takes Python's lock from the other threads that encode.
        self._buffered = pa.BufferedOutputStream(pa.PythonFile(self._sink, mode="w"), _BUFFER)
        self._properties = properties
        self._omitted = omitted
        self._lay_out(layout)
        self._arrow_schema = self._layout.arrow
        self._row_group_bytes = self._options.row_group_bytes
        self._collector = MetricsCollector(self._arrow_schema, omitted)
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._flushed_bytes = 0
        self._estimate = 0
        self._ended = False
        self._metadata = dict(metadata)
        self._choice = choice or EncodingChoice()
        self._writer: pq.ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows. Raises ``InvalidArgument`` for a batch of another schema."""
        if self._ended:
            raise ValueError("write to a Parquet file that was closed or aborted")
        if not batch.schema.equals(self._arrow_schema):
            raise InvalidArgument(
                f"the batch is not of the file's schema: {batch.schema} instead of {self._arrow_schema}"
            )
        if batch.num_rows == 0:
            return
        self._pending.append(batch)
        self._pending_bytes += batch.nbytes
        if self._pending_bytes >= self._row_group_bytes:
            self._flush()

    @property
    def estimated_size(self) -> int:
        written = self._estimate if self._ended else self._buffered.tell()
        ratio = written / self._flushed_bytes if self._flushed_bytes else _FIRST_GUESS
        self._estimate = max(self._estimate, written + int(self._pending_bytes * ratio))
        return self._estimate

    @property
    def buffered_bytes(self) -> int:
        return self._pending_bytes

    def flush(self) -> None:
        """End the row group here."""
        self._flush()

    def close(self) -> WrittenFile:
        if self._ended:
            raise ValueError("a Parquet file is closed once")
        try:
            self._flush()
            writer = self._opened()
            completes = self._layout.lacks_annotations and self._key is None
            if completes:
                self._sink.hold()
            writer.close()
            self._buffered.flush()
            if completes:
                layout = self._layout
                self._sink.release(lambda tail: completed_tail(tail, layout.logical_types, layout.footers))
            size = self._sink.tell()
            footer = writer.writer.metadata
            self._sink.publish()
        except BaseException:
            self.abort()
            raise
        self._ended = True
        return WrittenFile(size, self._metrics(footer), _split_offsets(footer))

    def abort(self) -> None:
        self._ended = True
        self._pending.clear()
        self._pending_bytes = 0
        self._sink.abort()
        # pyarrow's writer writes the end of its file when it is destroyed: the sink discards these bytes.
        if self._writer is not None:
            self._writer.is_open = False

    def _lay_out(self, layout: FileLayout) -> None:
        """Set the options that depend on a layout."""
        self._layout = layout
        self._options = write_options(
            self._properties, layout.paths, all_counted=layout.all_counted, shredded=layout.shredded
        )
        self._string_bounds = StringBounds(layout, self._options.arguments["write_statistics"], self._omitted)

    def _shred(self, first: pa.Table) -> None:
        """Change the layout if the first rows show variants that are worth shredding."""
        schema, rows = self._layout.schema, self._options.shredding_rows
        if not rows or not has_variants(schema.fields):
            return
        types = shredded_types(first, schema.fields, rows)
        if types:
            self._lay_out(layout_of(schema, types))
            self._choice = EncodingChoice()  # other files of the write have other columns

    def _opened(self, first: pa.Table | None = None, rows: int = 0) -> pq.ParquetWriter:
        """Return pyarrow's writer, and open it when the first rows are known: they determine the encodings."""
        if self._writer is None:
            arguments = dict(self._options.arguments)
            limit, page_bytes = arguments["dictionary_pagesize_limit"], arguments["data_page_size"]
            if first is not None:
                arguments |= self._choice.arguments(first, rows, self._layout.places, limit, page_bytes)
            arguments["encryption_properties"] = encryption(self._key)
            if self._key is not None:
                arguments.pop("bloom_filter_options", None)  # pyarrow encrypts none
            self._writer = _open(self._buffered, self._layout.storage, arguments)
            if self._metadata:
                self._writer.add_key_value_metadata(self._metadata)
        return self._writer

    def _flush(self) -> None:
        """Write the pending rows as row groups of equal size, as close to the target size as possible."""
        if not self._pending:
            return
        if len(self._pending) > 1 and sum(map(len, self._pending)) < _WORTH_A_THREAD:
            # A copy of few rows takes less than the calls for each column of each batch.
            self._pending = [pa.concat_batches(self._pending)]
        table = pa.Table.from_batches(self._pending, self._arrow_schema)
        groups = max(1, round(self._pending_bytes / self._row_group_bytes))
        rows = min(-(-table.num_rows // groups), _MAX_ROW_GROUP_ROWS)
        if self._writer is None:
            self._shred(table)
        stored = to_storage(table, self._layout.schema, self._layout.storage)
        writer = self._opened(stored, rows)
        stated = self._string_bounds.stated_by_footer(table, groups=-(-table.num_rows // rows))
        if table.num_rows < _WORTH_A_THREAD:
            self._gather(stated)
            writer.write_table(stored, row_group_size=rows)
        else:
            with Background(lambda: self._gather(stated)):  # both leave Python's lock to others most of the time
                writer.write_table(stored, row_group_size=rows)
        self._flushed_bytes += self._pending_bytes
        self._pending, self._pending_bytes = [], 0

    def _gather(self, stated: frozenset[int]) -> None:
        """Collect the metrics of the pending rows, except for bounds that the footer will provide."""
        for batch in self._pending:
            self._collector.update(batch, stated)

    def _metrics(self, footer: Any) -> Metrics:
        metrics = replace(self._collector.metrics(), column_sizes=_column_sizes(footer, self._layout.ids))
        self._string_bounds.add_to(metrics, footer)
        return metrics


def _open(sink: pa.NativeFile, schema: pa.Schema, arguments: Mapping[str, Any]) -> pq.ParquetWriter:
    try:
        return pq.ParquetWriter(
            sink,
            schema,
            store_schema=False,
            store_decimal_as_integer=True,
            use_compliant_nested_type=True,
            write_page_checksum=True,
            **arguments,
        )
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedFeature(f"Parquet cannot hold this schema: {error}") from error
    except TypeError as error:
        raise UnsupportedFeature(f"pyarrow {pa.__version__} cannot write as the table asks: {error}") from error


def _split_offsets(footer: Any) -> list[int] | None:
    return [row_group_start(footer.row_group(at)) for at in range(footer.num_row_groups)] or None


def _column_sizes(footer: Any, ids: tuple[int | None, ...]) -> dict[int, int]:
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    sizes: dict[int, int] = {}
    for index, id_ in enumerate(ids):
        if id_ is not None:
            sizes[id_] = sizes.get(id_, 0) + sum(group.column(index).total_compressed_size for group in groups)
    return sizes

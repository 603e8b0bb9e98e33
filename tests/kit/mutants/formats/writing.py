"""Formats that write wrong: batches, order, slices, ends and appended blocks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
from icefield.abc import FlushingWriter, FormatWriter, OutputStream, WrittenFile
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import StorageError
from icefield.metadata.metrics import Metrics
from icefield.schema import Schema

from mutants import Mutant, of
from mutants.formats.handed_on import Right, Writer


class LosesTheLastBatch(Right):
    class writer(Writer):
        held: pa.RecordBatch | None = None

        def write(self, batch: pa.RecordBatch) -> None:
            if self.held is not None:
                self.inner.write(self.held)
            self.held = batch


class WritesInAnotherOrder(Right):
    class writer(Writer):
        def __init__(self, inner: FormatWriter) -> None:
            super().__init__(inner)
            self.held: list[pa.RecordBatch] = []

        def write(self, batch: pa.RecordBatch) -> None:
            self.held.append(batch)

        def close(self) -> WrittenFile:
            for batch in reversed(self.held):
                self.inner.write(batch)
            return self.inner.close()


class TellsAWrongSize(Right):
    class writer(Writer):
        def close(self) -> WrittenFile:
            written = self.inner.close()
            return replace(written, size=written.size - 1)


class CountsNoFlushedBytes(Right):
    class writer(Writer, FlushingWriter):
        flushed = False

        def flush(self) -> None:
            self.flushed = True

        def close(self) -> WrittenFile:
            written = self.inner.close()
            return replace(written, size=written.size - self.flushed)


class PublishesWhatIsAborted(Right):
    class writer(Writer):
        def abort(self) -> None:
            self.inner.close()


class IgnoresTheOffsetsOfSlices(Right):
    class writer(Writer):
        def write(self, batch: pa.RecordBatch) -> None:
            first = batch.column(0)
            whole = pa.Array.from_buffers(first.type, len(first), first.buffers())
            self.inner.write(batch.set_column(0, batch.schema.field(0), whole))


class WritesWhatLiesBelowNulls(Right):
    class writer(Writer):
        def write(self, batch: pa.RecordBatch) -> None:
            columns = [
                pa.StructArray.from_arrays([c.field(i) for i in range(c.type.num_fields)], fields=[*c.type])
                if pa.types.is_struct(c.type)
                else c
                for c in batch.columns
            ]
            self.inner.write(pa.RecordBatch.from_arrays(columns, schema=batch.schema))


class SwallowsErrorsOfTheStorage(Right):
    class writer(Writer):
        def write(self, batch: pa.RecordBatch) -> None:
            with suppress(StorageError):
                self.inner.write(batch)

        def close(self) -> WrittenFile:
            try:
                return self.inner.close()
            except StorageError:
                return WrittenFile(0, Metrics(record_count=0))

    def open_writer(self, sink: OutputStream, schema: Schema, **options: Any) -> FormatWriter:
        try:
            return super().open_writer(sink, schema, **options)
        except StorageError:
            return super().open_writer(MemoryFileSystem().open_output(f"memory://lost/{uuid4()}"), schema, **options)


class PublishesBeforeTheEnd(Right):
    class writer(Writer):
        def write(self, batch: pa.RecordBatch) -> None:
            self.inner.write(batch)
            self.done = self.inner.close()

        def close(self) -> WrittenFile:
            return self.done


class AppendsNothing(Right):
    def append_blocks(
        self, old: bytes, schema: Schema, batch: pa.RecordBatch, metadata: Mapping[str, str]
    ) -> bytes | None:
        return self.inner.append_blocks(old, schema, batch.slice(0, 0), metadata)


class AppendsToAnything(Right):
    def append_blocks(
        self, old: bytes, schema: Schema, batch: pa.RecordBatch, metadata: Mapping[str, str]
    ) -> bytes | None:
        return self.inner.append_blocks(old, schema, batch, metadata) or old


MUTANTS: list[Mutant] = of(
    {
        LosesTheLastBatch: ("test_many_batches_keep_their_order", "4,995 rows came back of 5,000"),
        WritesInAnotherOrder: ("test_many_batches_keep_their_order", "row 0 of 'n' is 4995, not 0"),
        TellsAWrongSize: ("test_the_size_is_that_of_the_file", "before the footer is written"),
        CountsNoFlushedBytes: ("test_the_size_counts_every_block_flush_and_key", "leaves out a flushed block"),
        PublishesWhatIsAborted: ("test_an_aborted_file_is_never_seen", "publishes half a file"),
        IgnoresTheOffsetsOfSlices: ("test_slices_of_batches_are_written_as_they_are", "row 0 of 'n' is 0, not 13"),
        WritesWhatLiesBelowNulls: (
            "test_what_is_below_nulls_does_not_come_back",
            "although the struct is null",
        ),
        SwallowsErrorsOfTheStorage: ("test_a_stream_that_fails_fails_the_file", "is swallowed or renamed"),
        PublishesBeforeTheEnd: ("test_a_file_is_not_seen_before_it_is_closed", "closed before the file is whole"),
        AppendsNothing: ("test_appended_blocks_come_after_the_old_ones", "500 rows came back of 600"),
        AppendsToAnything: (
            "test_blocks_are_not_appended_to_a_file_of_another_schema",
            "own schema does not describe",
        ),
    }
)

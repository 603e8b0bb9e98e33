"""Formats that forget a promise of a contract's small print, one defect each."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa
from icefield.abc import (
    FlushingWriter,
    FormatReader,
    FormatWriter,
    InputFile,
    ManifestFormatReader,
    OutputStream,
    ReadRequest,
    TypedReader,
    WrittenFile,
)
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import InvalidArgument, InvalidFile, UnsupportedFeature
from icefield.schema import Schema
from icefield.types import IcebergType, ListType, StructType

from mutants import Mutant, of
from mutants.formats.handed_on import Batches, Reader, Right, Writer, broken_metrics, broken_reading


def _depth(kind: IcebergType) -> int:
    if isinstance(kind, ListType):
        return 1 + _depth(kind.element_type)
    if isinstance(kind, StructType):
        return 1 + max(_depth(field.field_type) for field in kind.fields)
    return 0


class RefusesDepth(Right):
    """Refuses columns of more than sixteen levels."""

    def open_writer(self, sink: OutputStream, schema: Schema, **options: Any) -> FormatWriter:
        if any(_depth(field.field_type) > 16 for field in schema.fields):
            raise UnsupportedFeature("more than sixteen levels")
        return super().open_writer(sink, schema, **options)


class TakesAnotherKindForAnotherVersion(Right):
    """Says of a file of another kind that its version is unknown."""

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        try:
            return super().open_reader(source, location, size=size)
        except InvalidFile as error:
            raise UnsupportedFeature(f"{location} is of another version", location=location) from error


class WritesNoFileWithoutRows(Right):
    """Refuses to close a file without a row."""

    class writer(Writer):
        rows = 0

        def write(self, batch: pa.RecordBatch) -> None:
            self.rows += batch.num_rows
            self.inner.write(batch)

        def close(self) -> WrittenFile:
            if not self.rows:
                raise InvalidArgument("a file has a row at least")
            return self.inner.close()


class EndsAtAnEmptyBatch(Right):
    """Takes a batch without rows for the end."""

    class writer(Writer):
        ended = False

        def write(self, batch: pa.RecordBatch) -> None:
            self.ended = self.ended or not batch.num_rows
            if not self.ended:
                self.inner.write(batch)


class AbortDeletesAClosedFile(Right):
    """Deletes the file when it is aborted, closed or not."""

    def open_writer(self, sink: OutputStream, schema: Schema, **options: Any) -> FormatWriter:
        return _Deleting(super().open_writer(sink, schema, **options), sink)


class _Deleting(Writer):
    def __init__(self, inner: FormatWriter, sink: Any) -> None:
        super().__init__(inner)
        self.sink = sink

    def abort(self) -> None:
        self.inner.abort()
        MemoryFileSystem().delete_many([self.sink._location])


class GivesLargeStrings(Right):
    """Gives lists and strings in the form that its library has."""

    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        for batch in inner.read(request):
            columns = [
                column.cast(pa.large_list(column.type.value_field)) if pa.types.is_list(column.type) else column
                for column in batch.columns
            ]
            fields = [field.with_type(column.type) for field, column in zip(batch.schema, columns, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)) if columns else batch

    reader = broken_reading(_read)


class SaysItsNameInCapitals(Right):
    name: ClassVar[str] = "AVRO"


class BeginsWithAnotherMagic(Right):
    magic: ClassVar[bytes] = b"Avro"


class BelievesLengths(Right):
    """Reserves what a damaged file claims."""

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        try:
            return super().open_reader(source, location, size=size)
        except InvalidFile:
            _RESERVED.append(pa.allocate_buffer((1 << 30) + 1))
            raise


_RESERVED: list[Any] = []


class SharesOneRequest(Right):
    """Keeps the request of a read where all readers find it."""

    latest: ClassVar[dict[str, Any]] = {}

    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        SharesOneRequest.latest["thread"] = threading.get_ident()
        time.sleep(0.01)
        for batch in inner.read(request):
            yield batch if SharesOneRequest.latest["thread"] == threading.get_ident() else batch.slice(1)

    reader = broken_reading(_read)


class KnowsAllProperties(Right):
    """Refuses a property that it does not know."""

    def open_writer(self, sink: OutputStream, schema: Schema, **options: Any) -> FormatWriter:
        unknown = [name for name in options.get("properties") or {} if not name.startswith("write.avro.")]
        if unknown:
            raise InvalidArgument(f"unknown properties {unknown}")
        return super().open_writer(sink, schema, **options)


class FlushLosesRows(Right):
    """Forgets the rows since the last block when it is flushed."""

    class writer(Writer, FlushingWriter):
        held: pa.RecordBatch | None = None

        def write(self, batch: pa.RecordBatch) -> None:
            self._end()
            self.held = batch

        def flush(self) -> None:
            self.held = None

        def close(self) -> WrittenFile:
            self._end()
            return self.inner.close()

        def _end(self) -> None:
            if self.held is not None:
                self.inner.write(self.held)
            self.held = None


class EstimatesNothing(Right):
    """Knows the size of a file when it is closed."""

    class writer(Writer):
        @property
        def estimated_size(self) -> int:
            return 0


class SharesItsRows(Right):
    """Gathers the rows of all writers in one list."""

    class writer(Writer):
        rows: ClassVar[list[pa.RecordBatch]] = []

        def write(self, batch: pa.RecordBatch) -> None:
            self.rows.append(batch)

        def close(self) -> WrittenFile:
            for batch in self.rows:
                self.inner.write(batch)
            self.rows.clear()
            return self.inner.close()


class FindsColumnsInAnyCase(Right):
    """Finds a column by its name in lower case."""

    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        for batch in inner.read(request):
            places = {name.lower(): at for at, name in enumerate(batch.schema.names)}
            columns = [batch.column(places[name.lower()]) for name in batch.schema.names]
            yield pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch

    reader = broken_reading(_read)


class OffsetsBehindTheEnd(Right):
    """States the end of the file as a place where a block begins."""

    class writer(Writer):
        def close(self) -> WrittenFile:
            written = self.inner.close()
            return replace(written, split_offsets=[*(written.split_offsets or [4]), written.size])


class SizesOfNoColumn(Right):
    """States the size of a column that the file does not have."""

    writer = broken_metrics(lambda metrics: replace(metrics, column_sizes={**metrics.column_sizes, 999: 1}))


class StoredTypesOfColumns(Right):
    """States a stored type for each column, and none for what is inside."""

    class reader(Reader, TypedReader):
        @property
        def stored_types(self) -> list[str]:
            return [str(field.type) for field in self.schema]


class BoundsAsText(Right):
    """States bounds of whole numbers as text."""

    writer = broken_metrics(
        lambda metrics: replace(
            metrics,
            lower_bounds={number: str(bound) for number, bound in metrics.lower_bounds.items()},
            upper_bounds={number: str(bound) for number, bound in metrics.upper_bounds.items()},
        )
    )


class MetricsOfTheFirstBatch(Right):
    """States the bounds of the first batch alone."""

    class writer(Writer):
        batches = 0

        def write(self, batch: pa.RecordBatch) -> None:
            self.batches += 1
            self.inner.write(batch)

        def close(self) -> WrittenFile:
            written = self.inner.close()
            if self.batches < 2:
                return written
            return replace(written, metrics=replace(written.metrics, upper_bounds={}))


class ReadsWhatFollowsTheEnd(Right):
    """Takes bytes after the end for one more record."""

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        if source.read_at(max(0, source.size - 100), 100) == b"x" * 100:
            raise ValueError("an odd record")
        return super().open_reader(source, location, size=size)


MUTANTS: list[Mutant] = of(
    {
        RefusesDepth: ("test_a_deeply_nested_column_reads_back", "depth is bounded below"),
        TakesAnotherKindForAnotherVersion: ("test_a_file_of_another_kind_is_refused", "no InvalidFile for b'PAR1'"),
        WritesNoFileWithoutRows: ("test_a_file_without_rows_reads_back", "does not make a whole file"),
        EndsAtAnEmptyBatch: ("test_empty_batches_between_others_make_no_difference", "a batch without rows ends"),
        AbortDeletesAClosedFile: ("test_aborting_a_closed_file_does_nothing", "takes back a file that is published"),
        GivesLargeStrings: ("test_batches_have_exactly_the_types_asked_for", "a batch comes as large strings"),
        SaysItsNameInCapitals: ("test_it_says_its_name_and_extension", "in lower case"),
        BeginsWithAnotherMagic: ("test_its_files_begin_with_its_magic", "are not recognised"),
        BelievesLengths: ("test_lengths_that_lie_are_not_believed", "memory is reserved"),
        SharesOneRequest: ("test_many_threads_read_one_file", "rows came back of 2,000"),
        KnowsAllProperties: ("test_properties_of_others_are_ignored", "a table property that the format"),
        FlushLosesRows: ("test_rows_around_a_flush_keep_their_order", "``flush`` loses or repeats rows"),
        EstimatesNothing: ("test_the_estimated_size_grows_with_what_is_written", "files never roll to the next"),
        SharesItsRows: ("test_two_files_are_written_side_by_side", "writers share a buffer"),
        FindsColumnsInAnyCase: ("test_names_that_differ_in_case_are_two_columns", "without regard to case"),
        OffsetsBehindTheEnd: ("test_split_offsets_are_inside_the_file", "offset"),
        SizesOfNoColumn: ("test_column_sizes_are_of_the_columns_of_the_file", "columns that the file does not have"),
        StoredTypesOfColumns: ("test_stored_types_are_one_for_each_leaf_or_none", "5 stored types of 6 leaves"),
        BoundsAsText: ("test_metrics_of_every_type_are_true", "are no internal values"),
        MetricsOfTheFirstBatch: ("test_metrics_of_several_batches_are_those_of_the_file", "those of the last batch"),
        ReadsWhatFollowsTheEnd: (
            "test_bytes_after_the_end_are_an_error_or_make_no_difference",
            "none of Icefield's: ValueError: an odd record",
        ),
    }
)

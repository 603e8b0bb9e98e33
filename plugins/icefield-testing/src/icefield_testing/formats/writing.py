"""The result of a writer: a whole file with all of its rows, or no file."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from icefield import MemoryFileSystem
from icefield.abc import FileFormat, FlushingWriter, FormatWriter, OutputStream
from icefield.errors import StorageError
from icefield.schema import Schema
from icefield.types import StringType

from icefield_testing.format_data import flat_table, table_of
from icefield_testing.formats.base import FormatChecks, fresh


def flush(writer: FormatWriter) -> None:
    """Flush a writer that can do so."""
    if isinstance(writer, FlushingWriter):
        writer.flush()


class WritingChecks(FormatChecks):
    """Checks of writers, and of the format as a value."""

    def test_a_file_without_rows_reads_back(self, file_format: FileFormat) -> None:
        """If this fails, closing a writer that never got a batch does not make a whole file."""
        schema, table = flat_table(0)
        location, written = self.write(file_format, schema, table)
        assert written.metrics.record_count == 0
        assert self.read_all(file_format, location, schema).num_rows == 0

    def test_empty_batches_between_others_make_no_difference(self, file_format: FileFormat) -> None:
        """If this fails, a batch without rows ends the file, or makes a block that cannot be read."""
        schema, table = flat_table(100)
        batches = table.combine_chunks().to_batches()[0]
        location = fresh()
        with file_format.open_writer(MemoryFileSystem().open_output(location), schema) as writer:
            for start, rows in ((0, 0), (0, 40), (40, 0), (40, 60), (100, 0)):
                writer.write(batches.slice(start, rows))
            assert writer.close().metrics.record_count == 100
        self.check_equal(self.read_all(file_format, location, schema), table)

    def test_many_batches_keep_their_order(self, file_format: FileFormat) -> None:
        """If this fails, buffered batches are written out of order or lost on close."""
        schema, table = flat_table(5_000)
        location, written = self.write(file_format, schema, table, batch_rows=333)
        self.check_equal(self.read_all(file_format, location, schema), table)
        assert written.metrics.record_count == 5_000

    def test_rows_around_a_flush_keep_their_order(self, file_format: FileFormat) -> None:
        """If this fails, ``flush`` loses or repeats rows, or ``buffered_bytes`` counts what is no longer held."""
        schema, table = flat_table(1_000)
        location = fresh()
        with file_format.open_writer(MemoryFileSystem().open_output(location), schema) as writer:
            flush(writer)
            for batch in table.to_batches(max_chunksize=300):
                writer.write(batch)
                before = writer.buffered_bytes
                flush(writer)
                assert 0 <= writer.buffered_bytes <= before, "flush makes a writer hold less"
            assert writer.close().metrics.record_count == 1_000
            assert writer.buffered_bytes == 0, "a closed writer holds nothing"
        self.check_equal(self.read_all(file_format, location, schema), table)

    def test_two_files_are_written_side_by_side(self, file_format: FileFormat) -> None:
        """If this fails, writers share a buffer or a schema that is not theirs alone."""
        schema, table = flat_table(1_000)
        other_schema, other = table_of(StringType(), ["x"] * 1_000, required=True)
        places = (fresh(), fresh())
        one = file_format.open_writer(MemoryFileSystem().open_output(places[0]), schema)
        two = file_format.open_writer(MemoryFileSystem().open_output(places[1]), other_schema)
        for mine, theirs in zip(table.to_batches(max_chunksize=99), other.to_batches(max_chunksize=99), strict=True):
            one.write(mine)
            two.write(theirs)
        one.close()
        two.close()
        self.check_equal(self.read_all(file_format, places[0], schema), table)
        self.check_equal(self.read_all(file_format, places[1], other_schema), other)

    def test_key_value_metadata_comes_back(self, file_format: FileFormat) -> None:
        """If this fails, ``metadata`` of ``open_writer`` is not stored, or not stated by the reader."""
        schema, table = flat_table(3)
        given_metadata = {"schema": '{"type":"struct"}', "ü": "日本", "empty": "", "long": "x" * 100_000}
        location, _ = self.write(file_format, schema, table, metadata=given_metadata)
        with self.open(file_format, location) as reader:
            for key, value in given_metadata.items():
                assert reader.metadata[key] == value.encode()

    def test_properties_of_others_are_ignored(self, file_format: FileFormat) -> None:
        """If this fails, a table property that the format does not know stops it."""
        schema, table = flat_table(3)
        properties = {"owner": "me", "write.nobody.knows": "x", "commit.retry.num-retries": "3"}
        location, _ = self.write(file_format, schema, table, properties=properties)
        self.check_equal(self.read_all(file_format, location, schema), table)

    def test_the_size_is_that_of_the_file(self, file_format: FileFormat) -> None:
        """If this fails, ``WrittenFile.size`` is taken before the footer is written."""
        for rows in (0, 1_000):
            location, written = self.write(file_format, *flat_table(rows))
            assert written.size == MemoryFileSystem().stat(location).size

    def test_the_size_counts_every_block_flush_and_key(self, file_format: FileFormat) -> None:
        """If this fails, ``WrittenFile.size`` leaves out a flushed block or the key-value metadata."""
        schema, table = flat_table(3_000)
        location = fresh()
        sink = MemoryFileSystem().open_output(location)
        given = {"key": "x" * 10_000}
        with file_format.open_writer(sink, schema, properties=self.small_blocks, metadata=given) as writer:
            for batch in table.to_batches(max_chunksize=700):
                writer.write(batch)
                flush(writer)
            written = writer.close()
        assert written.size == MemoryFileSystem().stat(location).size == len(MemoryFileSystem.files[location][0])

    def test_the_estimated_size_grows_with_what_is_written(self, file_format: FileFormat) -> None:
        """If this fails, files never roll to the next, or at each batch."""
        schema, table = flat_table(50_000)
        sink = MemoryFileSystem().open_output(fresh())
        sizes = []
        with file_format.open_writer(sink, schema) as writer:
            for batch in table.to_batches(max_chunksize=5_000):
                writer.write(batch)
                sizes.append(writer.estimated_size)
            written = writer.close()
        assert sizes == sorted(sizes)
        assert written.size / 20 <= sizes[-1] <= written.size * 20

    # -- only `close` publishes

    def test_a_file_is_not_seen_before_it_is_closed(self, file_format: FileFormat) -> None:
        """If this fails, the stream is closed before the file is whole."""
        schema, table = flat_table(1_000)
        location = fresh()
        with file_format.open_writer(MemoryFileSystem().open_output(location), schema) as writer:
            writer.write(table.to_batches()[0])
            assert [*MemoryFileSystem().list_files(location)] == []
            with pytest.raises(FileNotFoundError):
                MemoryFileSystem().stat(location)
            writer.close()
        assert MemoryFileSystem().stat(location).size > 0

    def test_an_aborted_file_is_never_seen(self, file_format: FileFormat) -> None:
        """If this fails, ``abort``, or an exception inside a with block, publishes half a file."""
        schema, table = flat_table(1_000)
        first, second = fresh(), fresh()
        writer = file_format.open_writer(MemoryFileSystem().open_output(first), schema)
        writer.write(table.to_batches()[0])
        writer.abort()
        writer.abort()
        broken = file_format.open_writer(MemoryFileSystem().open_output(second), schema)
        broken.write(table.to_batches()[0])
        broken.__exit__(KeyError, KeyError("the caller failed"), None)
        assert [*MemoryFileSystem().list_files(first)] == []
        for location in (first, second):
            with pytest.raises(FileNotFoundError):
                MemoryFileSystem().stat(location)

    def test_aborting_a_closed_file_does_nothing(self, file_format: FileFormat) -> None:
        """If this fails, an error after ``close`` takes back a file that is published."""
        schema, table = flat_table(10)
        location = fresh()
        writer = file_format.open_writer(MemoryFileSystem().open_output(location), schema)
        writer.write(table.to_batches()[0])
        writer.close()
        writer.abort()
        self.check_equal(self.read_all(file_format, location, schema), table)

    @pytest.mark.parametrize("after", [0, 1_000, 60_000])
    def test_a_stream_that_fails_fails_the_file(self, file_format: FileFormat, after: int) -> None:
        """If this fails, an error of the storage is swallowed or renamed, and half a file is taken for a whole one."""
        schema, table = flat_table(20_000)
        location = fresh()
        sink = _Failing(MemoryFileSystem().open_output(location), after)
        with pytest.raises((StorageError, OSError)):
            self._write_to(file_format, sink, schema, table)
        sink.abort()
        assert [*MemoryFileSystem().list_files(location)] == []

    def _write_to(self, file_format: FileFormat, sink: Any, schema: Schema, table: pa.Table) -> None:
        with file_format.open_writer(sink, schema, properties=self.small_blocks) as writer:
            for batch in table.to_batches(max_chunksize=1_000):
                writer.write(batch)
            writer.close()

    # -- value semantics

    def test_it_pickles(self, file_format: FileFormat) -> None:
        """If this fails, the format holds state, and cannot go to an executor."""
        again = pickle.loads(pickle.dumps(file_format))
        assert type(again) is type(file_format)
        schema, table = flat_table(10)
        location, written = self.write(again, schema, table)
        assert pickle.loads(pickle.dumps(written)) == written
        self.check_equal(self.read_all(file_format, location, schema), table)

    def test_it_says_its_name_and_extension(self, file_format: FileFormat) -> None:
        """If this fails, the name is not what manifests hold, in lower case."""
        assert file_format.name == file_format.name.lower() != ""
        assert file_format.extension
        assert not file_format.extension.startswith(".")

    def test_its_files_begin_with_its_magic(self, file_format: FileFormat) -> None:
        """If this fails, files without a suffix are not recognised, or those of other formats are taken for its own."""
        assert isinstance(file_format.magic, bytes)
        for rows in (0, 10):
            location, _ = self.write(file_format, *flat_table(rows))
            assert MemoryFileSystem.files[location][0].startswith(file_format.magic)

    def test_a_closed_reader_has_closed_its_input(self, file_format: FileFormat) -> None:
        """If this fails, each file that is read costs an open connection."""
        schema, table = flat_table(10)
        location, _ = self.write(file_format, schema, table)
        source = MemoryFileSystem().open_input(location)
        with file_format.open_reader(source, location) as reader:
            self._read(reader)
        assert source.closed


class _Failing(OutputStream):
    """A stream whose storage fails after a number of bytes."""

    def __init__(self, inner: OutputStream, after: int) -> None:
        self._inner = inner
        self._left = after

    def write(self, data: Any, /) -> int:
        self._left -= memoryview(data).nbytes
        if self._left < 0:
            raise StorageError("the disk is full", location="memory://full")
        return self._inner.write(data)

    def tell(self) -> int:
        return self._inner.tell()

    def close(self) -> None:
        self._inner.close()

    def abort(self) -> None:
        self._inner.abort()

    @property
    def closed(self) -> bool:
        return self._inner.closed

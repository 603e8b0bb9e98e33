"""The base of the checks of a file format: a format, and files of it in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Final, TypeVar
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from icefield import MemoryFileSystem
from icefield.abc import FileFormat, FormatAbility, FormatReader, ReadRequest, Split, WrittenFile
from icefield.errors import UnsupportedFeature
from icefield.expressions import BooleanExpression
from icefield.scan import ColumnProjection
from icefield.schema import Schema
from icefield.toolkit import times_as_numbers
from icefield.types import IcebergType, ListType, MapType, StructType

from icefield_testing.base import Suite
from icefield_testing.formats.explain import Reading, different_value

SOAK: Final = bool(os.environ.get("ICEFIELD_SOAK"))

Test = TypeVar("Test", bound=Callable[..., Any])


def examples(count: int) -> Callable[[Test], Test]:
    """Settings of Hypothesis with a number of examples; forty times as many in a soak."""
    return settings(max_examples=count * (40 if SOAK else 1), deadline=None, suppress_health_check=list(HealthCheck))


class FormatChecks(Suite):
    """The fixture that an author provides, and helpers."""

    unsupported: ClassVar[tuple[type[IcebergType], ...]] = ()
    """Types that the format cannot hold: a declared gap, refused by ``open_writer``."""

    unsupported_places: ClassVar[tuple[tuple[type[IcebergType], str], ...]] = ()
    """Types that it cannot hold as an only ``field`` of a struct, an ``element``, a ``key`` or a ``value``."""

    small_blocks: ClassVar[Mapping[str, str]] = {}
    """Write properties that make the blocks, row groups or stripes of a file so small that 3,000 rows fill several.

    Positions and splits are tried between them. A format that declares ``SPLITS`` must be divided by them.
    """

    survives_fork: ClassVar[bool] = True
    """Whether the format works in a forked process. False where its library has threads of its own, as one in Rust has:
    then damaged files are read by a fresh interpreter, which imports the class by the name of its module."""

    @pytest.fixture
    def file_format(self) -> FileFormat:
        """The file format under test."""
        raise pytest.UsageError("give a fixture `file_format` that returns the file format under test")

    def refuses(self, file_format: FileFormat, schema: Schema) -> bool:
        """Whether a type of the schema is a declared gap; then the writer must refuse it and leave no file."""
        if not any(isinstance(kind, self.unsupported) for kind in kinds_in(schema.as_struct())):
            return False
        self.check_refused(file_format, schema)
        return True

    def check_refused(self, file_format: FileFormat, schema: Schema) -> None:
        """Check that the writer refuses the schema and leaves no file."""
        location = fresh()
        sink = MemoryFileSystem().open_output(location)
        with pytest.raises(UnsupportedFeature):
            file_format.open_writer(sink, schema)
        sink.abort()
        assert [*MemoryFileSystem().list_files(location)] == []

    def write(
        self,
        file_format: FileFormat,
        schema: Schema,
        table: pa.Table,
        *,
        batch_rows: int = 10_000,
        properties: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> tuple[str, WrittenFile]:
        """Write a table to a fresh location."""
        location = fresh()
        sink = MemoryFileSystem().open_output(location)
        with file_format.open_writer(sink, schema, properties=properties, metadata=metadata) as writer:
            for batch in table.to_batches(max_chunksize=batch_rows):
                writer.write(batch)
            return location, writer.close()

    def open(self, file_format: FileFormat, location: str) -> FormatReader:
        """Open a file of the memory file system."""
        return file_format.open_reader(MemoryFileSystem().open_input(location), location)

    def read_all(self, file_format: FileFormat, location: str, schema: Schema) -> pa.Table:
        """Read every column."""
        with self.open(file_format, location) as reader:
            assert len(reader.schema) == len(schema.fields)
            return self._read(reader)

    def _read(self, reader: FormatReader) -> pa.Table:
        return pa.Table.from_batches(reader.read(ReadRequest(reader.schema)), reader.schema)

    def read_as(
        self, file_format: FileFormat, location: str, schema: Schema, constants: Mapping[int, Any] | None = None
    ) -> pa.Table:
        """Read a file under the schema of a table, as the kernel does."""
        with self.open(file_format, location) as reader:
            projection = ColumnProjection.resolve(schema, reader.schema, constants, location=location)
            request = ReadRequest(projection.file_columns, positions=projection.positions)
            batches = []
            for batch in reader.read(request):
                wanted = [*projection.file_columns.names, *(["_pos"] if projection.positions else [])]
                assert batch.schema.names == wanted
                batches.append(projection.apply(batch))
            return pa.Table.from_batches(batches, projection.schema)

    def check_round_trip(self, file_format: FileFormat, schema: Schema, table: pa.Table) -> None:
        """Check that a written table reads back equal to the bit, unless a type is a declared gap."""
        if self.refuses(file_format, schema):
            return
        location, written = self.write(file_format, schema, table)
        self.check_equal(self.read_as(file_format, location, schema), table)
        stated = written.metrics.record_count
        assert stated == table.num_rows, f"record_count is {stated:,}, there are {table.num_rows:,} rows"

    def numbered(
        self,
        file_format: FileFormat,
        location: str,
        split: Split | None = None,
        row_filter: BooleanExpression | None = None,
        *,
        batch_rows: int = 131_072,
        positions: bool = True,
    ) -> Reading:
        """Read a file whose column ``n`` holds the number of each row; all columns when there is a filter."""
        with self.open(file_format, location) as reader:
            columns = reader.schema if row_filter is not None else pa.schema([reader.schema.field("n")])
            request = ReadRequest(columns, row_filter, split=split, positions=positions, batch_rows=batch_rows)
            return self.as_reading(reader.read(request), split, filtered=row_filter is not None)

    def as_reading(
        self, batches: Iterable[pa.RecordBatch], split: Split | None = None, *, filtered: bool = False
    ) -> Reading:
        """The row numbers and positions in batches."""
        found = Reading(split, filtered)
        for batch in batches:
            found.batches.append(batch.num_rows)
            found.numbers += batch.column("n").to_pylist()
            if batch.schema.names[-1] == "_pos":
                found.positions += batch.column("_pos").to_pylist()
        return found

    def in_splits(
        self,
        file_format: FileFormat,
        location: str,
        cuts: Sequence[int],
        row_filter: BooleanExpression | None = None,
        *,
        positions: bool = True,
    ) -> list[Reading]:
        """Read a file split by split; ``cuts`` are the starts of the splits, and the end of the last one."""
        return [
            self.numbered(file_format, location, Split(start, end - start), row_filter, positions=positions)
            for start, end in pairwise(cuts)
        ]

    def needs_splits(self, file_format: FileFormat) -> None:
        """Skip a check of splits for a format that declares none."""
        if FormatAbility.SPLITS not in file_format.abilities:
            pytest.skip("the format declares no SPLITS")

    def check_equal(self, got: pa.Table, expected: pa.Table) -> None:
        """Check that tables are equal to the bit: NaN equals NaN, -0.0 does not equal 0.0."""
        assert got.column_names == expected.column_names
        rows = expected.num_rows
        assert got.num_rows == rows, f"{got.num_rows:,} rows came back of {rows:,} that were written"
        got.validate(full=True)
        for name in expected.column_names:
            ours, theirs = got.column(name), expected.column(name)
            assert ours.type == theirs.type, f"{name} came back as {ours.type}, not {theirs.type}"
            problem = different_value(name, plain(ours), plain(theirs))
            assert problem is None, problem


def plain(column: pa.ChunkedArray) -> list[Any]:
    """A column as Python values; times are numbers, since Python's times lack nanoseconds."""
    values: list[Any] = times_as_numbers(column.combine_chunks()).to_pylist()
    return values


def fresh() -> str:
    """A location that no other file has."""
    return f"memory://kit/{uuid4().hex}"


def kinds_in(kind: IcebergType) -> Iterator[IcebergType]:
    """A type and every type inside it."""
    yield kind
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from kinds_in(field.field_type)
    elif isinstance(kind, ListType):
        yield from kinds_in(kind.element_type)
    elif isinstance(kind, MapType):
        yield from kinds_in(kind.key_type)
        yield from kinds_in(kind.value_type)

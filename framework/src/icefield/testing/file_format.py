"""The suite that a file format must pass.

An author subclasses it and gives the format; gaps are declared by type, and must then be refused on writing::

    class TestMyFormat(FileFormatSuite):
        unsupported = (FixedType,)

        @pytest.fixture
        def file_format(self):
            return MyFormat()
"""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings

from icefield.abc import FileFormat, FormatAbility, FormatReader, ReadRequest, Split, WrittenFile
from icefield.arrow_types import field_id
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import IcefieldError, InvalidFile, UnsupportedFeature
from icefield.expressions import bind, parse
from icefield.schema import Schema
from icefield.testing.base import Suite
from icefield.testing.format_data import EDGES, NESTED, NESTED_ROWS, flat_table, table_of, tables
from icefield.types import IcebergType, LongType, NestedField, StructType


class FileFormatSuite(Suite):
    """Checks of ``icefield.abc.FileFormat``."""

    unsupported: ClassVar[tuple[type[IcebergType], ...]] = ()
    """Types that the format cannot hold: a declared gap, refused by ``open_writer``."""

    @pytest.fixture
    def file_format(self) -> FileFormat:
        """The file format under test."""
        raise pytest.UsageError("give a fixture `file_format` that returns the file format under test")

    # -- what is written reads back

    @pytest.mark.parametrize("required", [True, False], ids=["required", "optional"])
    @pytest.mark.parametrize("kind", EDGES, ids=str)
    def test_every_primitive_type_reads_back(self, file_format: FileFormat, kind: IcebergType, required: bool) -> None:
        """If this fails, a value at the edge of that type changes on its way; see the types' table in the guide."""
        schema, table = table_of(kind, EDGES[kind], required=required)
        if isinstance(kind, self.unsupported):
            with pytest.raises(UnsupportedFeature):
                self.write(file_format, schema, table)
            return
        location, _ = self.write(file_format, schema, table)
        self.check_equal(self.read_all(file_format, location, schema), table)

    @pytest.mark.parametrize("required", [True, False], ids=["required", "optional"])
    @pytest.mark.parametrize("shape", NESTED)
    def test_every_nested_shape_reads_back(self, file_format: FileFormat, shape: str, required: bool) -> None:
        """If this fails, look at null against empty, at nulls inside, and at required elements."""
        rows = [row for row in NESTED_ROWS[shape] if not (required and row is None)]
        schema, table = table_of(NESTED[shape], rows, required=required)
        location, _ = self.write(file_format, schema, table)
        self.check_equal(self.read_all(file_format, location, schema), table)

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(made=tables())
    def test_any_table_reads_back(self, file_format: FileFormat, made: tuple[Schema, pa.Table]) -> None:
        """If this fails, Hypothesis prints the smallest schema and rows that do not survive."""
        schema, table = made
        location, written = self.write(file_format, schema, table)
        self.check_equal(self.read_all(file_format, location, schema), table)
        assert written.metrics.record_count == table.num_rows

    def test_a_file_without_rows_reads_back(self, file_format: FileFormat) -> None:
        """If this fails, closing a writer that never got a batch does not make a whole file."""
        schema, table = flat_table(0)
        location, written = self.write(file_format, schema, table)
        assert written.metrics.record_count == 0
        assert self.read_all(file_format, location, schema).num_rows == 0

    def test_many_batches_keep_their_order(self, file_format: FileFormat) -> None:
        """If this fails, buffered batches are written out of order or lost on close."""
        schema, table = flat_table(5_000)
        location, written = self.write(file_format, schema, table, batch_rows=333)
        self.check_equal(self.read_all(file_format, location, schema), table)
        assert written.metrics.record_count == 5_000

    # -- field ids

    def test_ids_are_kept_at_every_level(self, file_format: FileFormat) -> None:
        """If this fails, ids of list elements, map keys, map values or nested fields are not stored in the file."""
        for kind in NESTED.values():
            schema = Schema(NestedField(1, "n", LongType(), required=True), NestedField(2, "v", kind))
            _, table = table_of(kind, [], required=False)
            location, _ = self.write(file_format, schema, table)
            with self.open(file_format, location) as reader:
                assert [*_ids(reader.schema)] == [*_ids(table.schema)]

    def test_columns_are_pruned_at_every_level(self, file_format: FileFormat) -> None:
        """If this fails, ``ReadRequest.columns`` with fewer children, or in another order, is not honoured."""
        schema, table = flat_table(100)
        location, _ = self.write(file_format, schema, table)
        with self.open(file_format, location) as reader:
            nested = reader.schema.field("p")
            pruned = nested.with_type(pa.struct([nested.type.field("b")]))
            for fields in (
                [pruned],
                [reader.schema.field("d"), reader.schema.field("n")],
                [pruned, reader.schema.field("s")],
            ):
                wanted = pa.schema(fields)
                got = pa.Table.from_batches(reader.read(ReadRequest(wanted)), wanted)
                assert got.column_names == [field.name for field in fields]
                assert got.num_rows == 100
                for field in fields:
                    expected = table.column(field.name)
                    if field.name == "p":
                        expected = pc.if_else(pc.is_null(expected), None, pc.struct_field(expected, "b"))
                        assert pc.struct_field(got.column("p"), "b").to_pylist() == expected.to_pylist()
                        assert got.column("p").is_null().to_pylist() == table.column("p").is_null().to_pylist()
                    else:
                        assert got.column(field.name).to_pylist() == expected.to_pylist()

    # -- reading

    def test_batches_are_bounded(self, file_format: FileFormat) -> None:
        """If this fails, ``batch_rows`` is ignored, and a reader of large files runs out of memory."""
        schema, table = flat_table(2_000)
        location, _ = self.write(file_format, schema, table)
        with self.open(file_format, location) as reader:
            batches = list(reader.read(ReadRequest(reader.schema, batch_rows=150)))
        assert max(batch.num_rows for batch in batches) <= 150
        assert sum(batch.num_rows for batch in batches) == 2_000

    def test_positions_count_rows_of_the_file(self, file_format: FileFormat) -> None:
        """If this fails, ``_pos`` restarts with each batch or row group."""
        schema, table = flat_table(3_000)
        location, _ = self.write(file_format, schema, table, batch_rows=700)
        with self.open(file_format, location) as reader:
            wanted = pa.schema([reader.schema.field("n")])
            for batch in reader.read(ReadRequest(wanted, positions=True, batch_rows=512)):
                assert batch.schema.names == ["n", "_pos"]
                assert batch.schema.field("_pos").type == pa.int64()
                assert batch.column(0).equals(batch.column(1))

    def test_splits_read_every_row_once(self, file_format: FileFormat) -> None:
        """If this fails, a block that starts on the border of two splits is read twice or never."""
        if FormatAbility.SPLITS not in file_format.abilities:
            pytest.skip("the format declares no SPLITS")
        schema, table = flat_table(20_000)
        location, written = self.write(file_format, schema, table, batch_rows=1_000, properties=_SMALL_BLOCKS)
        rng = random.Random(7)
        for pieces in (1, 2, 3, 7, 40):
            cuts = sorted({0, written.size, *(rng.randrange(written.size) for _ in range(pieces - 1))})
            found: list[int] = []
            for start, end in pairwise(cuts):
                with self.open(file_format, location) as reader:
                    wanted = pa.schema([reader.schema.field("n")])
                    request = ReadRequest(wanted, split=Split(start, end - start), positions=True)
                    for batch in reader.read(request):
                        assert batch.column(0).equals(batch.column(1))
                        found += batch.column(0).to_pylist()
            assert sorted(found) == list(range(20_000))

    def test_split_offsets_lie_inside_the_file(self, file_format: FileFormat) -> None:
        """If this fails, ``split_offsets`` are unsorted or count from somewhere else than the file's start."""
        schema, table = flat_table(20_000)
        _, written = self.write(file_format, schema, table, batch_rows=1_000, properties=_SMALL_BLOCKS)
        offsets = written.split_offsets
        if offsets is not None:
            assert offsets == sorted(set(offsets))
            assert all(0 <= offset < written.size for offset in offsets)

    def test_a_filter_leaves_no_matching_row_out(self, file_format: FileFormat) -> None:
        """If this fails, skipping by statistics is unsound: look at nulls, NaN and truncated bounds."""
        schema, table = flat_table(8_000)
        location, _ = self.write(file_format, schema, table, batch_rows=500, properties=_SMALL_BLOCKS)
        for text in ("n = 4321", "n < 10", "n >= 7990", "s = 'value-5'", "s is null", "d > 2600.0", "n in (1, 7999)"):
            with self.open(file_format, location) as reader:
                request = ReadRequest(reader.schema, row_filter=bind(schema, parse(text)))
                got = set(pa.Table.from_batches(reader.read(request), reader.schema).column("n").to_pylist())
            assert got >= _matching(table, text)

    def test_map_keys_that_are_wanted_come(self, file_format: FileFormat) -> None:
        """If this fails, ``ReadRequest.map_keys`` drops an entry that was asked for."""
        schema, table = table_of(NESTED["map of ints"], [[(k, f"v{k}") for k in range(9)]] * 50, required=True)
        location, _ = self.write(file_format, schema, table)
        with self.open(file_format, location) as reader:
            request = ReadRequest(reader.schema, map_keys={2: frozenset({3, 5, 77})})
            for batch in reader.read(request):
                for row in batch.column(1).to_pylist():
                    assert {key: value for key, value in row if key in (3, 5, 77)} == {3: "v3", 5: "v5"}

    # -- writing

    def test_key_value_metadata_comes_back(self, file_format: FileFormat) -> None:
        """If this fails, ``metadata`` of ``open_writer`` is not stored, or not told by the reader."""
        schema, table = flat_table(3)
        given_metadata = {"schema": '{"type":"struct"}', "ü": "日本"}
        location, _ = self.write(file_format, schema, table, metadata=given_metadata)
        with self.open(file_format, location) as reader:
            for key, value in given_metadata.items():
                assert reader.metadata[key] == value.encode()

    def test_the_size_is_that_of_the_file(self, file_format: FileFormat) -> None:
        """If this fails, ``WrittenFile.size`` is taken before the footer is written."""
        schema, table = flat_table(1_000)
        location, written = self.write(file_format, schema, table)
        assert written.size == MemoryFileSystem().stat(location).size

    def test_the_estimated_size_grows_with_what_is_written(self, file_format: FileFormat) -> None:
        """If this fails, files never roll to the next, or at each batch."""
        schema, table = flat_table(50_000)
        sink = MemoryFileSystem().open_output(_fresh())
        sizes = []
        with file_format.open_writer(sink, schema) as writer:
            for batch in table.to_batches(max_chunksize=5_000):
                writer.write(batch)
                sizes.append(writer.estimated_size)
            written = writer.close()
        assert sizes == sorted(sizes)
        assert written.size / 20 <= sizes[-1] <= written.size * 20

    def test_an_aborted_file_is_never_seen(self, file_format: FileFormat) -> None:
        """If this fails, ``abort``, or an exception inside a with block, publishes half a file."""
        schema, table = flat_table(1_000)
        first, second = _fresh(), _fresh()
        writer = file_format.open_writer(MemoryFileSystem().open_output(first), schema)
        writer.write(table.to_batches()[0])
        writer.abort()
        broken = file_format.open_writer(MemoryFileSystem().open_output(second), schema)
        broken.write(table.to_batches()[0])
        broken.__exit__(KeyError, KeyError("the caller failed"), None)
        assert [*MemoryFileSystem().list(first)] == []
        for location in (first, second):
            with pytest.raises(FileNotFoundError):
                MemoryFileSystem().stat(location)

    def test_metrics_tell_the_truth(self, file_format: FileFormat) -> None:
        """If this fails, look at ``MetricsCollector``: counts include nulls, bounds leave out null and NaN."""
        schema, table = flat_table(999)
        _, written = self.write(file_format, schema, table)
        metrics = written.metrics
        assert metrics.record_count == 999
        for number, name in ((1, "n"), (2, "s"), (3, "d")):
            column = table.column(name)
            if number in metrics.null_value_counts:
                assert metrics.null_value_counts[number] == column.null_count
            if number in metrics.value_counts:
                assert metrics.value_counts[number] == 999
            if number in metrics.lower_bounds:
                assert metrics.lower_bounds[number] == pc.min(column).as_py()
            if number in metrics.upper_bounds:
                assert metrics.upper_bounds[number] == pc.max(column).as_py()
        assert 5 not in metrics.lower_bounds, "what lies inside a list has no bounds"

    def test_a_nan_is_no_bound(self, file_format: FileFormat) -> None:
        """If this fails, a bound is NaN, and every comparison with it is false: files are skipped that match."""
        schema = Schema(NestedField(1, "f", next(k for k in EDGES if str(k) == "double")))
        arrow = pa.schema([table_of(schema.fields[0].field_type, [], required=False)[1].schema.field("v")])
        schema = Schema(NestedField(2, "v", schema.fields[0].field_type))
        table = pa.Table.from_arrays([pa.array([1.0, math.nan, None, 2.0])], schema=arrow)
        _, written = self.write(file_format, schema, table)
        bounds = [*written.metrics.lower_bounds.values(), *written.metrics.upper_bounds.values()]
        assert all(bound == bound for bound in bounds)

    # -- bad input

    def test_damage_gets_one_typed_error(self, file_format: FileFormat) -> None:
        """If this fails, the library's own exception escapes: translate it to InvalidFile with the location."""
        schema, table = flat_table(2_000)
        location, written = self.write(file_format, schema, table, batch_rows=500)
        whole = MemoryFileSystem().open_input(location).read()
        rng = random.Random(11)
        for turn in range(150):
            data = bytearray(whole)
            if turn % 3 == 0:
                del data[rng.randrange(len(data)) :]
            elif turn % 3 == 1:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            else:
                start = rng.randrange(len(data))
                data[start : start + rng.randrange(1, 40)] = rng.randbytes(rng.randrange(0, 40))
            self.read_damaged(file_format, bytes(data))
        for bad in (b"", b"\0", b"PAR1", b"not a file of any format", whole[: written.size // 2]):
            with pytest.raises(InvalidFile) as caught:
                self.read_strictly(file_format, bad)
            assert "memory://damaged" in str(caught.value)

    # -- value semantics

    def test_it_pickles(self, file_format: FileFormat) -> None:
        """If this fails, the format holds state, and cannot go to an executor."""
        assert type(pickle.loads(pickle.dumps(file_format))) is type(file_format)

    def test_it_says_its_name_and_extension(self, file_format: FileFormat) -> None:
        """If this fails, the name is not what manifests hold, in lower case."""
        assert file_format.name == file_format.name.lower() != ""
        assert file_format.extension
        assert not file_format.extension.startswith(".")

    # -- helpers

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
        location = _fresh()
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
            return pa.Table.from_batches(reader.read(ReadRequest(reader.schema)), reader.schema)

    def check_equal(self, got: pa.Table, expected: pa.Table) -> None:
        """Equal to the bit: NaN equals NaN, -0.0 does not equal 0.0."""
        assert got.column_names == expected.column_names
        assert got.num_rows == expected.num_rows
        for name in expected.column_names:
            ours, theirs = got.column(name), expected.column(name)
            assert ours.type == theirs.type, f"{name} came back as {ours.type}, not {theirs.type}"
            assert repr(ours.combine_chunks().to_pylist()) == repr(theirs.combine_chunks().to_pylist())

    def read_damaged(self, file_format: FileFormat, data: bytes) -> None:
        """Read what may be damaged: rows or an error of Icefield's, nothing else."""
        try:
            self.read_strictly(file_format, data)
        except IcefieldError:
            return

    def read_strictly(self, file_format: FileFormat, data: bytes) -> None:
        """Read bytes as a file."""
        source: Any = pa.BufferReader(data)
        with file_format.open_reader(source, "memory://damaged/file", size=len(data)) as reader:
            for _ in reader.read(ReadRequest(reader.schema)):
                pass


# Small blocks and row groups, by the properties of the formats that have them.
_SMALL_BLOCKS = {
    "write.parquet.row-group-size-bytes": "20000",
    "write.orc.stripe-size-bytes": "20000",
    "write.avro.block-size-bytes": "4096",
}


def _fresh() -> str:
    return f"memory://kit/{uuid4().hex}"


def _ids(schema: pa.Schema | StructType) -> Iterator[int | None]:
    for field in schema:
        yield from _field_ids(field)


def _field_ids(field: pa.Field) -> Iterator[int | None]:
    yield field_id(field)
    kind = field.type
    if pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            yield from _field_ids(kind.field(i))
    elif pa.types.is_list(kind):
        yield from _field_ids(kind.value_field)
    elif pa.types.is_map(kind):
        yield from _field_ids(kind.key_field)
        yield from _field_ids(kind.item_field)


def _matching(table: pa.Table, text: str) -> set[int]:
    """The row numbers that a filter matches, found without the library."""
    checks: dict[str, Callable[[dict[str, Any]], bool]] = {
        "n = 4321": lambda r: r["n"] == 4321,
        "n < 10": lambda r: r["n"] < 10,
        "n >= 7990": lambda r: r["n"] >= 7990,
        "s = 'value-5'": lambda r: r["s"] == "value-5",
        "s is null": lambda r: r["s"] is None,
        "d > 2600.0": lambda r: r["d"] is not None and r["d"] > 2600.0,
        "n in (1, 7999)": lambda r: r["n"] in (1, 7999),
    }
    return {row["n"] for row in table.to_pylist() if checks[text](row)}

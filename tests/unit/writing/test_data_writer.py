"""Rows into data files."""

import datetime as dt
import pickle
import threading
from dataclasses import replace
from urllib.parse import unquote_plus

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from bounded import bounded
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import InvalidArgument, StorageError, UnsupportedFeature
from icefield.manifest import DataFileContent
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.plugins import Plugins
from icefield.schema import Schema, schema_to_arrow
from icefield.storage import FileIO, LocationProvider
from icefield.types import NestedField, StructType
from icefield.types.values import value_from_bytes
from icefield.writing import WriteContext, write_batches

SCHEMA = Schema(
    NestedField(1, "n", "long", required=True),
    NestedField(2, "t", "string"),
    NestedField(3, "s", StructType(NestedField(4, "ts", "timestamp"), NestedField(5, "d", "double"))),
)
SPEC = PartitionSpec(PartitionField(2, 1000, "identity", "t"), PartitionField(4, 1001, "day", "ts_day"), spec_id=3)
PLUGINS = Plugins.installed()
START = dt.datetime(2024, 1, 1)

WIDE = Schema(NestedField(1, "p", "int"), NestedField(2, "s", "string"))
BY_PART = PartitionSpec(PartitionField(1, 1000, "identity", "p"))


def wide_rows(batches, rows, partitions):
    """Batches of one partition each, with strings of 256 bytes; the partitions repeat in turn."""
    for number in range(batches):
        partition = pa.array(np.full(rows, number % partitions), pa.int32())
        yield pa.record_batch([partition, pa.repeat(f"{number:256}", rows)], schema=schema_to_arrow(WIDE))


@pytest.fixture
def context(request):
    location = f"memory://write/{request.node.name}"
    return WriteContext(SCHEMA, SPEC, LocationProvider.of(location, {}), FileIO(PLUGINS))


def rows_table(rows=1_000, days=3):
    rows_ = [
        {"n": n, "t": ["a", "b/ü=", None][n % 3], "s": {"ts": START + dt.timedelta(hours=n % (24 * days)), "d": n / 2}}
        for n in range(rows)
    ]
    return pa.Table.from_pylist(rows_, schema=schema_to_arrow(SCHEMA))


def read(context, file):
    return pq.read_table(pa.BufferReader(context.io.read(file.file_path)))


def files_of(context):
    return sorted(info.location for info in MemoryFileSystem().list_files(context.locations.data_folder))


class TestDataFiles:
    @pytest.mark.spec("MAN-31", "MAN-32", "MAN-33", "MAN-34", "MAN-35", "PART-03", "PART-04")
    def test_there_is_one_file_a_partition_with_the_values_that_its_rows_have(self, context):
        table = rows_table()
        files = write_batches(context, table)
        assert len({file.partition for file in files}) == len(files) == 9
        seen = []
        for file in files:
            text, day = file.partition
            found = read(context, file)
            assert set(found["t"].to_pylist()) == {text}
            days = {(row["ts"].date() - dt.date(1970, 1, 1)).days for row in found["s"].to_pylist()}
            assert days == {day}
            assert file.record_count == found.num_rows
            assert file.file_size_in_bytes == context.io.stat(file.file_path).size
            assert file.file_path.startswith("memory://write/")
            assert (file.file_format, file.spec_id, file.content) == ("parquet", 3, DataFileContent.DATA)
            assert found["n"].to_pylist() == sorted(found["n"].to_pylist()), "rows keep their order"
            seen += found["n"].to_pylist()
        assert sorted(seen) == table["n"].to_pylist()
        assert files_of(context) == sorted(file.file_path for file in files)

    @pytest.mark.spec("MAN-38", "MAN-39", "MAN-40", "MAN-41", "MAN-43", "MAN-44", "MAN-46", "MET-01")
    def test_files_carry_their_metrics_by_field_id(self, context):
        context = replace(context, spec=PartitionSpec())
        (file,) = write_batches(context, rows_table())
        meta = pq.read_metadata(pa.BufferReader(context.io.read(file.file_path)))
        sizes = [meta.row_group(0).column(position).total_compressed_size for position in range(4)]
        assert dict(file.column_sizes) == dict(zip((1, 2, 4, 5), sizes, strict=True))
        assert dict(file.value_counts) == {1: 1000, 2: 1000, 4: 1000, 5: 1000}
        assert dict(file.null_value_counts) == {1: 0, 2: 333, 4: 0, 5: 0}
        assert dict(file.nan_value_counts) == {5: 0}
        kinds = {1: "long", 2: "string", 4: "timestamp", 5: "double"}
        low = {
            id_: value_from_bytes(SCHEMA.find_field(id_).field_type, data) for id_, data in file.lower_bounds.items()
        }
        high = {
            id_: value_from_bytes(SCHEMA.find_field(id_).field_type, data) for id_, data in file.upper_bounds.items()
        }
        assert set(low) == set(high) == set(kinds)
        assert (low[1], high[1], low[2], high[2], low[5], high[5]) == (0, 999, "a", "b/ü=", 0.0, 499.5)
        assert file.split_offsets == (4,)
        assert file.key_metadata is None
        assert file.sort_order_id is None

    @pytest.mark.spec("MET-16")
    def test_the_tables_metrics_modes_are_applied(self, context):
        properties = {
            "write.metadata.metrics.default": "counts",
            "write.metadata.metrics.column.t": "truncate(1)",
            "write.metadata.metrics.column.n": "none",
        }
        context = replace(context, spec=PartitionSpec(), properties=properties)
        (file,) = write_batches(context, rows_table())
        assert set(file.value_counts) == {2, 4, 5}
        assert dict(file.upper_bounds) == {2: b"c"}

    @pytest.mark.parametrize("name", ["parquet", "orc", "avro"])
    def test_formats_collect_only_the_metrics_that_the_table_keeps(self, context, name):
        properties = {"write.metadata.metrics.default": "none", "write.metadata.metrics.column.s.d": "full"}
        sink = context.io.create(f"{context.locations.data_folder}/{name}").sink
        writer = context.io.file_format(name).open_writer(sink, SCHEMA, properties=properties)
        for batch in rows_table(10).to_batches():
            writer.write(batch)
        metrics = writer.close().metrics
        assert (metrics.record_count, metrics.value_counts, metrics.nan_value_counts) == (10, {5: 10}, {5: 0})
        assert (metrics.lower_bounds, metrics.upper_bounds) == ({5: 0.0}, {5: 4.5})

    @pytest.mark.spec("PART-26")
    def test_folders_show_partition_values_escaped(self, context):
        files = write_batches(context, rows_table(days=1))
        folders = [file.file_path.removeprefix(context.locations.data_folder + "/").rsplit("/", 1)[0] for file in files]
        assert sorted(unquote_plus(folder) for folder in folders) == [
            "t=a/ts_day=2024-01-01",
            "t=b/ü=/ts_day=2024-01-01",
            "t=null/ts_day=2024-01-01",
        ]
        assert all(folder.count("/") == 1 and folder.isascii() for folder in folders)

    @pytest.mark.spec("PRJ-19")
    def test_partition_columns_are_in_the_files_as_well(self, context):
        (file, *_) = write_batches(context, rows_table())
        assert read(context, file).schema.names == ["n", "t", "s"]

    def test_names_state_task_attempt_and_operation_and_no_two_calls_meet(self, context):
        context = replace(context, operation_id="op")
        names = set()
        for task, attempt in ((0, 0), (1, 0), (1, 1)):
            for file in write_batches(context, rows_table(), task_id=task, attempt=attempt):
                name = file.file_path.rsplit("/", 1)[1]
                assert name.startswith(f"{task:05d}-{attempt}-op-")
                assert name.endswith(".parquet")
                names.add(name)
        assert len(names) == 27

    @pytest.mark.parametrize("spec", [SPEC, PartitionSpec()])
    def test_no_rows_make_no_file(self, context, spec):
        context = replace(context, spec=spec)
        assert write_batches(context, []) == []
        assert write_batches(context, schema_to_arrow(SCHEMA).empty_table()) == []
        assert files_of(context) == []

    def test_a_sort_order_is_recorded_when_the_rows_come_in_it(self, context):
        (file, *_) = write_batches(replace(context, sort_order_id=4), rows_table())
        assert file.sort_order_id == 4


class TestInput:
    @pytest.mark.parametrize("spec", [SPEC, PartitionSpec()])
    def test_tables_batches_readers_and_generators_give_the_same_files(self, context, spec):
        table = rows_table()
        batches = table.to_batches(max_chunksize=17)
        forms = {
            "table": table,
            "chunked": pa.Table.from_batches(batches),
            "reader": pa.RecordBatchReader.from_batches(table.schema, batches),
            "generator": (batch for batch in batches),
            "list": batches,
        }
        results = {}
        for name, form in forms.items():
            files = write_batches(replace(context, spec=spec, operation_id=name), form)
            results[name] = {file.partition: read(context, file)["n"].to_pylist() for file in files}
        assert all(result == results["table"] for result in results.values())

    def test_one_batch_is_taken_as_it_is(self, context):
        files = write_batches(context, rows_table().to_batches()[0])
        assert sum(file.record_count for file in files) == 1_000

    def test_batches_of_different_schemas_are_each_brought_under_the_tables(self, context):
        first = pa.RecordBatch.from_pydict({"n": pa.array([1], pa.int32()), "t": ["a"]})
        second = pa.RecordBatch.from_pydict({"t": pa.array(["a"], pa.large_string()), "n": pa.array([2], pa.int64())})
        (file,) = write_batches(context, [first, second])
        assert read(context, file).select(["n", "t", "s"]).to_pylist() == [
            {"n": 1, "t": "a", "s": None},
            {"n": 2, "t": "a", "s": None},
        ]

    def test_the_schema_of_an_empty_table_is_checked_as_well(self, context):
        with pytest.raises(InvalidArgument, match="'nope'"):
            write_batches(context, pa.table({"n": pa.array([], pa.int64()), "nope": pa.array([], pa.int64())}))

    def test_a_spec_with_an_unknown_transform_cannot_be_written_with(self, context):
        with pytest.raises(UnsupportedFeature, match="'p'"):
            replace(context, spec=PartitionSpec(PartitionField(1, 1000, "zorder[3]", "p")))

    @pytest.mark.spec("PART-12")
    def test_a_spec_of_void_fields_only_writes_nulls_for_them(self, context):
        spec = PartitionSpec(PartitionField(1, 1000, "void", "gone"), spec_id=1)
        (file,) = write_batches(replace(context, spec=spec), rows_table())
        assert file.partition == (None,)


class TestRolling:
    def test_files_end_near_the_target_and_keep_the_order_of_rows(self, context):
        texts = pa.array(np.random.default_rng(1).integers(0, 10**9, 60_000)).cast(pa.string())
        table = pa.table({"n": range(60_000), "t": texts})
        table = table.append_column("s", pa.nulls(60_000, schema_to_arrow(SCHEMA).field("s").type))
        properties = {"write.parquet.row-group-size-bytes": "50000"}
        context = replace(context, spec=PartitionSpec(), target_file_bytes=60_000, properties=properties)
        files = write_batches(context, table)
        sizes = [file.file_size_in_bytes for file in files]
        assert len(files) > 3
        assert all(30_000 < size < 120_000 for size in sizes[:-1])
        assert [n for file in files for n in read(context, file)["n"].to_pylist()] == list(range(60_000))
        assert all(len(file.split_offsets) >= 1 for file in files)

    @pytest.mark.parametrize("rows", [20, 5_000])
    def test_one_giant_batch_rolls_as_many_small_ones_do(self, context, rows):
        table = rows_table(20_000)
        context = replace(context, spec=PartitionSpec(), target_file_bytes=100_000)
        whole = write_batches(replace(context, operation_id="whole"), table)
        pieces = write_batches(replace(context, operation_id="pieces"), table.to_batches(max_chunksize=rows))
        assert len(whole) > 2
        assert abs(len(whole) - len(pieces)) <= 1 + len(whole) // 3
        assert sum(file.record_count for file in pieces) == 20_000


class TestMemory:
    @pytest.mark.slow
    def test_a_long_stream_is_written_in_bounded_memory(self, context):
        """The stream has forty times as many bytes as the bound."""
        table = rows_table(2_000, days=5)
        context = replace(context, buffer_bytes=table.nbytes, workers=2)
        held = []

        def stream():
            for _ in range(40):
                held.append(pa.total_allocated_bytes())
                yield from table.to_batches(max_chunksize=500)

        before = pa.total_allocated_bytes()
        files = write_batches(context, stream())
        assert sum(file.record_count for file in files) == 80_000
        stored = sum(file.file_size_in_bytes for file in files)
        assert max(held) - before < 12 * table.nbytes + 3 * stored
        assert len(files) > 15, "some were closed early"
        for file in files:
            assert len({row["ts"].date() for row in read(context, file)["s"].to_pylist()}) == 1

    def test_rows_that_wait_in_open_files_count_against_the_bound(self, context):
        """Each of 24 open files could hold a row group: 400 MB together, while the bound is 16 MB."""
        context = replace(context, schema=WIDE, spec=BY_PART, buffer_bytes=16 << 20, workers=2)
        with bounded(seconds=20, megabytes=300):
            files = write_batches(context, wide_rows(batches=48, rows=32_768, partitions=24))
        assert [file.record_count for file in files] == [65_536] * 24
        assert max(len(file.split_offsets) for file in files) == 2, "a row group was ended early, not a file"

    def test_a_file_whose_writer_cannot_end_a_stripe_is_closed_when_memory_runs_short(self, context):
        context = replace(context, schema=WIDE, spec=BY_PART, buffer_bytes=2 << 20, workers=2, file_format="orc")
        files = write_batches(context, wide_rows(batches=16, rows=4_096, partitions=8))
        assert sum(file.record_count for file in files) == 16 * 4_096
        assert len(files) > 8

    def test_partitions_that_fill_row_groups_keep_one_file_open(self, context):
        table = rows_table(2_000, days=1).filter(pc.field("t") == "a")
        context = replace(context, buffer_bytes=table.nbytes * 4, workers=2)
        files = write_batches(context, (batch for _ in range(30) for batch in table.to_batches()))
        assert len(files) == 1
        assert files[0].record_count == 30 * table.num_rows

    def test_large_unpartitioned_streams_are_encoded_side_by_side(self, context):
        table = rows_table(2_000)
        context = replace(context, spec=PartitionSpec(), buffer_bytes=table.nbytes * 4, workers=2)
        files = write_batches(context, [*table.to_batches()] * 6)
        assert len(files) == 2
        assert sorted(n for file in files for n in read(context, file)["n"].to_pylist()) == sorted(
            table["n"].to_pylist() * 6
        )
        ordered = write_batches(replace(context, sort_order_id=1, operation_id="o"), [*table.to_batches()] * 6)
        assert len(ordered) == 1
        assert read(context, ordered[0])["n"].to_pylist() == table["n"].to_pylist() * 6


class TestFailure:
    @pytest.mark.spec("TYP-19")
    @pytest.mark.parametrize("spec", [SPEC, PartitionSpec()])
    def test_nothing_is_left_when_the_rows_are_bad_in_the_end(self, context, spec):
        table = rows_table(2_000)
        bad = pa.RecordBatch.from_pydict({"n": pa.array([None], pa.int64())})
        context = replace(context, spec=spec, buffer_bytes=table.nbytes // 4, target_file_bytes=20_000)

        def stream():
            yield from table.to_batches(max_chunksize=100)
            yield bad

        with pytest.raises(InvalidArgument, match="'n'"):
            write_batches(context, stream())
        assert files_of(context) == []

    def test_nothing_is_left_when_the_source_fails_and_its_error_comes_through(self, context):
        class Gone(Exception):
            pass

        def stream():
            yield from rows_table().to_batches()
            raise Gone

        with pytest.raises(Gone):
            write_batches(replace(context, buffer_bytes=1), stream())
        assert files_of(context) == []

    def test_nothing_is_left_when_the_store_fails_in_one_of_the_threads(self, context, monkeypatch):
        calls = []
        real = MemoryFileSystem.open_output

        def failing(self, location):
            calls.append(location)
            if len(calls) == 5:
                raise StorageError("the store is full", location=location)
            return real(self, location)

        monkeypatch.setattr(MemoryFileSystem, "open_output", failing)
        with pytest.raises(StorageError, match="full"):
            write_batches(context, rows_table())
        assert files_of(context) == []

    def test_no_thread_is_left_behind(self, context):
        before = set(threading.enumerate())  # readers have a pool of this process
        write_batches(context, rows_table())
        with pytest.raises(InvalidArgument):
            write_batches(context, pa.table({"x": [1]}))
        assert set(threading.enumerate()) <= before

    def test_the_files_of_others_are_let_be(self, context):
        others = write_batches(context, rows_table())
        bad = pa.RecordBatch.from_pydict({"x": [1]})
        with pytest.raises(InvalidArgument):
            write_batches(replace(context, operation_id="mine"), [*rows_table().to_batches(), bad])
        assert files_of(context) == sorted(file.file_path for file in others)


class TestContext:
    def test_it_travels(self, context):
        other = pickle.loads(pickle.dumps(context))
        assert (other.schema, other.spec, other.locations) == (context.schema, context.spec, context.locations)
        assert other.operation_id == context.operation_id
        assert len(write_batches(other, rows_table())) == 9

    @pytest.mark.spec("MET-06", "MAN-32")
    @pytest.mark.parametrize("name", ["parquet", "avro"])
    def test_the_format_is_that_of_the_table(self, context, name):
        context = replace(context, file_format=name)
        files = write_batches(context, rows_table())
        assert {file.file_format for file in files} == {name}
        assert all(file.file_path.endswith("." + name) for file in files)
        assert sum(file.record_count for file in files) == 1_000
        if name == "avro":
            assert not files[0].column_sizes


def test_schemas_are_not_compared_for_every_partition(context, monkeypatch):
    # A table that is loaded again has another schema object, equal to the first.
    table = rows_table(days=60)
    write_batches(context, table)
    compared = []
    equal = StructType.__eq__

    def counting(self, other):
        compared.append(self)
        return equal(self, other)

    again = replace(context, schema=Schema(*pickle.loads(pickle.dumps(SCHEMA.fields))))
    monkeypatch.setattr(StructType, "__eq__", counting)
    files = write_batches(again, table, attempt=1)
    assert len(files) >= 100
    assert len(compared) < 20

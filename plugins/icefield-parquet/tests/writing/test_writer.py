"""How files are written: options, row groups, metrics, failure."""

import gc

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from icefield import MemoryFileSystem
from icefield.abc import OutputStream
from icefield.errors import InvalidArgument, StorageError
from icefield.schema import Schema, schema_to_arrow
from icefield.types import ListType, NestedField, StructType
from icefield_parquet.parquet_format import ParquetFormat
from icefield_parquet.writing.options import write_options
from parquet_files import read, write, write_rows

SCHEMA = Schema(
    NestedField(1, "n", "long", required=True),
    NestedField(2, "s", StructType(NestedField(3, "t", "string"), NestedField(4, "d", "double"))),
    NestedField(5, "l", ListType(6, "int")),
)
ROWS = [{"n": n, "s": {"t": f"text-{n % 50}", "d": n / 7} if n % 5 else None, "l": [n, None]} for n in range(2_000)]


def footer(data):
    return pq.ParquetFile(pa.BufferReader(data)).metadata


class TestOptions:
    @pytest.mark.spec("PARQ-24")
    def test_the_defaults_are_those_of_other_writers(self):
        options = write_options({}, {})
        assert options.row_group_bytes == 128 << 20
        assert options.arguments["compression"] == "zstd"
        assert options.arguments["data_page_size"] == 1 << 20
        assert options.arguments["dictionary_pagesize_limit"] == 2 << 20
        data, _ = write_rows(SCHEMA, ROWS)
        assert footer(data).row_group(0).column(0).compression == "ZSTD"
        assert footer(data).num_row_groups == 1

    @pytest.mark.spec("PARQ-24")
    @pytest.mark.parametrize(
        ("codec", "expected"),
        [("zstd", "ZSTD"), ("GZIP", "GZIP"), ("snappy", "SNAPPY"), ("lz4", "LZ4"), ("brotli", "BROTLI"),
         ("uncompressed", "UNCOMPRESSED")],
    )  # fmt: skip
    def test_each_codec_is_written_and_read(self, codec, expected):
        data, _ = write_rows(SCHEMA, ROWS, properties={"write.parquet.compression-codec": codec})
        assert footer(data).row_group(0).column(0).compression == expected
        assert read(data).to_pylist() == ROWS

    @pytest.mark.spec("PARQ-24")
    def test_the_level_counts_where_the_codec_has_levels(self):
        sizes = [
            len(write_rows(SCHEMA, ROWS, properties={"write.parquet.compression-level": level})[0])
            for level in ("1", "19")
        ]
        assert sizes[1] < sizes[0]
        properties = {"write.parquet.compression-codec": "snappy", "write.parquet.compression-level": "3"}
        assert read(write_rows(SCHEMA, ROWS, properties=properties)[0]).num_rows == len(ROWS)

    @pytest.mark.spec("PARQ-24")
    def test_row_groups_end_at_their_size(self):
        properties = {"write.parquet.row-group-size-bytes": "20000"}
        table = pa.Table.from_pylist(ROWS, schema=schema_to_arrow(SCHEMA))
        expected = table.nbytes / 20_000
        for batch_rows in (10, 100, None):
            data, written = write(SCHEMA, table, batch_rows=batch_rows, properties=properties)
            assert 0.5 * expected <= footer(data).num_row_groups <= 1.5 * expected
            assert len(written.split_offsets) == footer(data).num_row_groups
            assert read(data).to_pylist() == ROWS

    def test_how_often_sizes_are_to_be_checked_changes_nothing_for_they_are_always_known(self):
        table = pa.Table.from_pylist(ROWS, schema=schema_to_arrow(SCHEMA))
        size = {"write.parquet.row-group-size-bytes": "20000"}
        for checks in ("1", "1000000"):
            named = {f"write.parquet.row-group-check-{end}-record-count": checks for end in ("min", "max")}
            asked = write(SCHEMA, table, batch_rows=50, properties={**size, **named})[0]
            assert asked == write(SCHEMA, table, batch_rows=50, properties=size)[0]
            groups = footer(asked)
            for at in range(groups.num_row_groups - 1):
                rows = groups.row_group(at).num_rows
                assert table.nbytes / len(ROWS) * rows < 20_000 + table.slice(0, 50).nbytes, "one batch beyond at most"

    @pytest.mark.spec("PARQ-24")
    def test_pages_and_dictionaries_keep_to_their_size(self):
        rows = [
            {"n": n, "s": {"t": f"a rather long string number {n % 5000}", "d": 0.0}, "l": None} for n in range(20_000)
        ]
        usual = footer(write_rows(SCHEMA, rows)[0]).row_group(0)
        dictionary = {"write.parquet.dict-size-bytes": "1000"}
        plain = footer(write_rows(SCHEMA, rows, properties=dictionary)[0]).row_group(0)
        assert plain.column(1).total_uncompressed_size > 2 * usual.column(1).total_uncompressed_size
        for pages in ({"write.parquet.page-size-bytes": "1000"}, {"write.parquet.page-row-limit": "100"}):
            small = footer(write_rows(SCHEMA, rows, properties={**dictionary, **pages})[0]).row_group(0)
            assert small.column(1).total_uncompressed_size > plain.column(1).total_uncompressed_size, "more headers"

    @pytest.mark.spec("PARQ-24")
    def test_bloom_filters_and_statistics_are_written_for_the_columns_named(self):
        properties = {
            "write.parquet.bloom-filter-enabled.column.s.t": "true",
            "write.parquet.bloom-filter-fpp.column.s.t": "0.05",
            "write.parquet.stats-enabled.column.l.element": "false",
        }
        data, written = write_rows(SCHEMA, ROWS, properties=properties)
        columns = [footer(data).row_group(0).column(index) for index in range(4)]
        assert [column.bloom_filter_offset is not None for column in columns] == [False, True, False, False]
        assert [column.is_stats_set for column in columns] == [True, True, True, False]
        assert written.metrics.null_value_counts[6] == 2_000, "the manifest's metrics do not hang on the file's"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("write.parquet.compression-codec", "middle-out"),
            ("write.parquet.row-group-size-bytes", "much"),
            ("write.parquet.page-version", "v9"),
        ],
    )
    def test_a_property_that_cannot_be_used_is_named_and_nothing_is_written(self, name, value):
        with pytest.raises(InvalidArgument, match=name.replace(".", r"\.")):
            write_rows(SCHEMA, ROWS, properties={name: value})

    def test_the_bytes_of_a_bloom_filter_bound_the_values_it_is_made_for(self):
        enabled = {"write.parquet.bloom-filter-enabled.column.n": "true"}
        paths = {"n": "n"}
        most = write_options({**enabled, "write.parquet.bloom-filter-max-bytes": "100000"}, paths)
        assert most.arguments["bloom_filter_options"]["n"]["ndv"] < 100_000
        options = write_options({**enabled, "write.parquet.bloom-filter-ndv.column.n": "2000"}, paths)
        assert options.arguments["bloom_filter_options"]["n"]["ndv"] == 2_000


class TestMetrics:
    @pytest.mark.spec("MAN-34", "MAN-38", "MAN-39", "MAN-40", "MAN-43", "MAN-44", "MET-01", "MET-24")
    def test_metrics_equal_what_pyarrow_finds_in_the_file(self):
        data, written = write_rows(SCHEMA, ROWS, properties={"write.parquet.row-group-size-bytes": "20000"})
        metrics, meta = written.metrics, footer(data)
        groups = [meta.row_group(position) for position in range(meta.num_row_groups)]
        assert metrics.record_count == meta.num_rows
        for index, id_ in enumerate((1, 3, 4, 6)):
            chunks = [group.column(index) for group in groups]
            assert metrics.column_sizes[id_] == sum(chunk.total_compressed_size for chunk in chunks)
            assert metrics.null_value_counts[id_] == sum(chunk.statistics.null_count for chunk in chunks)
            assert metrics.value_counts[id_] == sum(chunk.num_values for chunk in chunks)
        table = read(data)
        assert metrics.lower_bounds[4] == pc.min(pc.struct_field(table["s"], 1)).as_py()
        assert metrics.upper_bounds[3] == "text-9"
        assert 6 not in metrics.lower_bounds

    @pytest.mark.spec("MAN-35")
    def test_the_size_is_that_of_the_file(self):
        data, written = write_rows(SCHEMA, ROWS)
        assert written.size == len(data)


class TestFailure:
    def test_a_batch_of_another_schema_is_refused(self):
        other = schema_to_arrow(Schema(NestedField(1, "n", "int")))
        writer = ParquetFormat().open_writer(MemoryFileSystem().open_output("memory://p/other"), SCHEMA)
        with pytest.raises(InvalidArgument, match="schema"):
            writer.write(pa.RecordBatch.from_pylist([{"n": 1}], schema=other))
        writer.abort()

    @pytest.mark.spec("FS-06")
    def test_nothing_is_published_before_close_and_nothing_is_left_after_abort(self):
        location = "memory://p/aborted"
        writer = ParquetFormat().open_writer(
            MemoryFileSystem().open_output(location), SCHEMA, properties={"write.parquet.row-group-size-bytes": "1"}
        )
        writer.write(pa.RecordBatch.from_pylist(ROWS, schema=schema_to_arrow(SCHEMA)))
        assert not list(MemoryFileSystem().list_files("memory://p/aborted"))
        writer.abort()
        del writer
        gc.collect()
        with pytest.raises(FileNotFoundError):
            MemoryFileSystem().stat(location)

    def test_a_stream_that_fails_fails_the_file_with_its_own_error(self):
        sink = FailingSink()
        writer = ParquetFormat().open_writer(sink, SCHEMA, properties={"write.parquet.row-group-size-bytes": "1"})
        batch = pa.RecordBatch.from_pylist(ROWS, schema=schema_to_arrow(SCHEMA))
        with pytest.raises(StorageError, match="the disk is full"):
            write_all(writer, batch)
        assert sink.aborted
        gc.collect()

    def test_a_closed_writer_takes_no_more(self):
        writer = ParquetFormat().open_writer(MemoryFileSystem().open_output("memory://p/closed"), SCHEMA)
        writer.close()
        with pytest.raises(ValueError, match="closed"):
            writer.write(pa.RecordBatch.from_pylist([], schema=schema_to_arrow(SCHEMA)))


def write_all(writer, batch):
    with writer:
        writer.write(batch)
        writer.close()


class FailingSink(OutputStream):
    """A stream that takes nothing."""

    aborted = False
    closed = False

    def write(self, data, /):
        raise StorageError("the disk is full", location="memory://p/full")

    def tell(self):
        return 0

    def close(self):
        raise AssertionError("a failed file was published")

    def abort(self):
        self.aborted = True

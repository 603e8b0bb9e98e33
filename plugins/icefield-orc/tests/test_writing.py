"""How files are written: options, sizes, failure."""

import gc

import pyarrow as pa
import pyarrow.orc as po
import pytest
from icefield import MemoryFileSystem
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.schema import Schema, schema_to_arrow
from icefield.types import ListType, NestedField, StructType
from icefield_orc.options import write_options
from icefield_orc.orc_format import OrcFormat
from orc_files import peer, write_rows

SCHEMA = Schema(
    NestedField(1, "n", "long", required=True),
    NestedField(2, "s", StructType(NestedField(3, "t", "string"))),
    NestedField(4, "l", ListType(5, "int")),
)
ROWS = [{"n": n, "s": {"t": f"text-{n % 50}"} if n % 5 else None, "l": [n, None]} for n in range(20_000)]


def opened(data):
    return po.ORCFile(pa.BufferReader(data))


class TestOptions:
    def test_the_defaults_are_those_of_the_properties(self):
        options = write_options({}, {})
        assert (options["compression"], options["compression_strategy"]) == ("zlib", "speed")
        assert (options["stripe_size"], options["batch_size"]) == (64 << 20, 1024)
        data, _ = write_rows(SCHEMA, ROWS[:10])
        assert opened(data).compression == "ZLIB"

    @pytest.mark.parametrize(("codec", "expected"), [("ZSTD", "ZSTD"), ("lz4", "LZ4"), ("none", "UNCOMPRESSED")])
    def test_the_codec_is_the_one_of_the_property(self, codec, expected):
        data, _ = write_rows(SCHEMA, ROWS[:10], properties={"write.orc.compression-codec": codec})
        assert opened(data).compression == expected

    def test_the_strategy_counts(self):
        sizes = [
            len(write_rows(SCHEMA, ROWS, properties={"write.orc.compression-strategy": strategy})[0])
            for strategy in ("speed", "compression")
        ]
        assert sizes[1] < sizes[0]

    def test_small_stripes_make_many(self):
        data, written = write_rows(SCHEMA, ROWS, properties={"write.orc.stripe-size-bytes": "10000"})
        assert opened(data).nstripes == len(written.split_offsets) >= 2

    def test_bloom_filters_are_written_for_the_columns_that_are_named(self):
        properties = {"write.orc.bloom.filter.columns": "s.t, n,nobody", "write.orc.bloom.filter.fpp": "0.01"}
        data, _ = write_rows(SCHEMA, ROWS[:100], properties=properties)
        assert {*peer(data).read_stripe(0).bloom_filter_columns} == {1, 3}

    @pytest.mark.parametrize(
        ("name", "value", "error"),
        [
            ("compression-codec", "lzo", UnsupportedFeature),
            ("compression-codec", "zip", InvalidArgument),
            ("compression-strategy", "best", InvalidArgument),
            ("stripe-size-bytes", "0", InvalidArgument),
        ],
    )
    def test_a_value_that_cannot_be_used_is_refused_with_the_property(self, name, value, error):
        with pytest.raises(error, match=f"write.orc.{name}"):
            write_rows(SCHEMA, [], properties={f"write.orc.{name}": value})

    def test_a_false_positive_rate_outside_its_range_is_refused(self):
        with pytest.raises(InvalidArgument, match="fpp"):
            write_options({"write.orc.bloom.filter.columns": "n", "write.orc.bloom.filter.fpp": "1"}, {"n": 1})


class TestFailure:
    def test_a_batch_of_another_schema_is_refused(self):
        with (
            pytest.raises(InvalidArgument, match="schema"),
            OrcFormat().open_writer(MemoryFileSystem().open_output("memory://orc/other"), SCHEMA) as writer,
        ):
            writer.write(pa.record_batch({"n": [1]}))

    def test_an_aborted_writer_leaves_nothing_when_it_is_let_go(self):
        location = "memory://orc/aborted"
        writer = OrcFormat().open_writer(MemoryFileSystem().open_output(location), SCHEMA)
        writer.write(pa.RecordBatch.from_pylist(ROWS[:10], schema_to_arrow(SCHEMA)))
        writer.abort()
        del writer
        gc.collect()
        assert [*MemoryFileSystem().list_files(location)] == []

    def test_a_writer_that_ended_takes_no_more(self):
        writer = OrcFormat().open_writer(MemoryFileSystem().open_output("memory://orc/ended"), SCHEMA)
        writer.close()
        with pytest.raises(ValueError, match="closed"):
            writer.write(pa.RecordBatch.from_pylist(ROWS[:10], schema_to_arrow(SCHEMA)))
        with pytest.raises(ValueError, match="once"):
            writer.close()


def test_pyarrow_reads_what_is_written():
    data, _ = write_rows(SCHEMA, ROWS)
    assert opened(data).read().to_pylist() == ROWS

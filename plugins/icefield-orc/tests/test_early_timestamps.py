"""Fractions of seconds before 1970: stored by the format's rule, in whatever stripe, column or codec they are."""

import datetime as dt
import io
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.orc as po
import pyorc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import BytesInput
from icefield.types import ListType, MapType, NestedField, StructType, TimestampNanoType
from icefield_orc.early_timestamps import stored_parts
from icefield_orc.stripes import INDEXES, read_footers
from icefield_orc.tail import read_tail
from orc_files import peer, read, read_as, reader_of, write, write_rows

EPOCH = dt.datetime(1970, 1, 1)
OLD = dt.datetime(1969, 7, 20, 20, 17, 40, 123_456)
UTC = dt.UTC
SMALL = {"write.orc.stripe-size-bytes": "4000", "write.orc.vectorized.batch-size": "100"}
CODECS = pytest.mark.parametrize("codec", ["none", "zlib", "zstd", "snappy", "lz4"])


def as_java_reads(seconds, nanos):
    """What ORC's Java library makes of stored parts, and Iceberg's of that."""
    millis = seconds * 1000 + int(nanos / 1_000_000)
    if millis < 0 and nanos > 999_999:
        millis -= 1000
    return millis // 1000 * 1_000_000_000 + nanos


def as_cpp_reads(seconds, nanos):
    """What ORC's C++ library makes of them."""
    return (seconds - (seconds < 0 and nanos > 999_999)) * 1_000_000_000 + nanos


NANOS = st.integers(-(2**62), 2**62) | st.integers(-3_000_000_000, 3_000_000_000)


class TestTheRule:
    @pytest.mark.spec("ORC-07")
    @given(values=st.lists(NANOS, min_size=1))
    def test_what_is_stored_is_read_right_by_both_libraries(self, values):
        seconds, nanos = (part.tolist() for part in stored_parts(np.array(values, np.int64), "ns"))
        for value, second, nano in zip(values, seconds, nanos, strict=True):
            assert as_cpp_reads(second, nano) == value
            # The format has no answer for these: see the module.
            if not -999_000_001 < value <= -1_000_000:
                assert as_java_reads(second, nano) == value

    @given(values=st.lists(NANOS, min_size=1))
    def test_parts_of_microseconds_are_those_of_their_nanoseconds(self, values):
        micros = np.array(values, np.int64) // 1000
        for left, right in zip(stored_parts(micros, "us"), stored_parts(micros * 1000, "ns"), strict=True):
            assert left.tolist() == right.tolist()


class TestFiles:
    INNER = StructType(NestedField(11, "t", "timestamp"), NestedField(12, "n", TimestampNanoType()))
    SCHEMA = Schema(
        NestedField(1, "id", "long"),
        NestedField(2, "s", INNER),
        NestedField(3, "l", ListType(4, ListType(5, "timestamptz"))),
        NestedField(6, "m", MapType(7, "timestamp", 8, StructType(NestedField(9, "t", "timestamp")))),
        NestedField(10, "text", "string"),
    )

    def row(self, number, timestamp):
        return {
            "id": number,
            "s": None if number % 5 == 0 else {"t": timestamp, "n": None if number % 3 == 0 else timestamp},
            "l": None if number % 7 == 0 else [[timestamp.replace(tzinfo=UTC), None], [], None],
            "m": [(timestamp, {"t": timestamp}), (timestamp + dt.timedelta(days=number + 1), None)],
            "text": sha256(b"%d" % number).hexdigest(),
        }

    @pytest.mark.slow
    @CODECS
    @pytest.mark.spec("ORC-04", "ORC-05", "ORC-07", "ORC-15")
    def test_timestamps_at_any_depth_of_any_stripe_read_back(self, codec):
        modern = [self.row(number, dt.datetime(2020, 1, 1, 0, 0, number % 60, number)) for number in range(2_000)]
        old = [self.row(number, OLD - dt.timedelta(seconds=number, microseconds=number)) for number in range(2_000)]
        rows = modern + old + modern
        properties = {**SMALL, "write.orc.compression-codec": codec}
        data, written = write_rows(self.SCHEMA, rows, batch_rows=500, properties=properties)
        assert len(written.split_offsets) > 5
        assert read_as(self.SCHEMA, data).to_pylist() == rows
        assert [row[0] for row in peer(data)] == [row["id"] for row in rows]
        assert [row[3] for row in peer(data)] == [self.seen(row["m"]) for row in rows]

    def seen(self, entries):
        return {key.replace(tzinfo=UTC): None if held is None else (held["t"].replace(tzinfo=UTC),)
                for key, held in entries}  # fmt: skip

    @CODECS
    def test_no_stored_fraction_is_negative_but_in_the_last_second(self, codec):
        """Seen from outside: a peer's library is asked to make nothing of what it reads."""
        schema = Schema(NestedField(1, "t", "timestamp"))
        rows = [{"t": OLD - dt.timedelta(microseconds=number)} for number in range(1_500)]
        data, _ = write_rows(schema, rows, properties={"write.orc.compression-codec": codec})
        assert not raw_nanos_are_negative(data)
        last, _ = write_rows(schema, [{"t": EPOCH - dt.timedelta(microseconds=5)}])
        assert raw_nanos_are_negative(last)

    def test_a_file_without_such_timestamps_keeps_its_indexes_and_statistics(self):
        schema = Schema(NestedField(1, "t", "timestamp"))
        for timestamp, kept in ((OLD, False), (OLD.replace(microsecond=0), True), (dt.datetime(2020, 1, 1, 1), True)):
            data, _ = write_rows(schema, [{"t": timestamp}])
            tail = read_tail(BytesInput(data), len(data))
            (footer,) = read_footers(BytesInput(data), tail)
            assert any(stream.kind in INDEXES for stream in footer.streams) is kept
            with reader_of(data) as reader:
                assert bool(reader.metrics().lower_bounds) is kept
            assert peer(data).row_index_stride == (10_000 if kept else 0)
            assert read(data).column("t").to_pylist() == [timestamp]

    @settings(max_examples=40, deadline=None)
    @given(values=st.lists(st.none() | st.integers(-4_000_000, 1_000_000), min_size=1, max_size=1_100))
    def test_any_number_of_them_reads_back(self, values):
        schema = Schema(NestedField(1, "t", "timestamp"), NestedField(2, "z", "timestamptz"))
        arrow = schema_to_arrow(schema)
        table = pa.table([pa.array(values, field.type) for field in arrow], schema=arrow)
        data, written = write(schema, table)
        assert read_as(schema, data).equals(table)
        theirs = po.ORCFile(pa.BufferReader(data)).read()
        assert theirs.column("t").cast(pa.timestamp("us")).cast(pa.int64()).to_pylist() == values
        assert written.size == len(data)


class TestSizes:
    SCHEMA = Schema(
        NestedField(1, "n", "long"),
        NestedField(2, "s", StructType(NestedField(3, "text", "string"), NestedField(4, "t", "timestamp"))),
        NestedField(5, "l", ListType(6, "double")),
    )

    @pytest.mark.parametrize("timestamp", [OLD, dt.datetime(2020, 1, 1)], ids=["rebuilt", "plain"])
    @pytest.mark.parametrize("batch_rows", [100, 10_000])
    @pytest.mark.spec("MET-01")
    def test_sizes_of_columns_are_those_of_their_streams(self, timestamp, batch_rows):
        rows = [{"n": number, "s": {"text": sha256(b"%d" % number).hexdigest(), "t": timestamp},
                 "l": [number / 3, None]} for number in range(6_000)]  # fmt: skip
        data, written = write_rows(self.SCHEMA, rows, batch_rows=batch_rows, properties=SMALL)
        tail = read_tail(BytesInput(data), len(data))
        assert len(tail.stripes) > 3
        sizes = {}
        for footer in read_footers(BytesInput(data), tail):
            for stream in footer.streams:
                if stream.kind not in INDEXES:
                    sizes[stream.column] = sizes.get(stream.column, 0) + stream.length
        # Columns in pre-order: the root, n, s, text, t, l, its element.
        assert written.metrics.column_sizes == {1: sizes[1], 3: sizes[3], 4: sizes[4], 6: sizes[6]}
        whole = sum(stripe.data_length for stripe in tail.stripes)
        assert sum(sizes.values()) == whole > 0.5 * len(data)
        with reader_of(data) as reader:
            assert reader.metrics().column_sizes == written.metrics.column_sizes

    def test_a_column_that_is_larger_has_the_larger_size(self):
        schema = Schema(NestedField(1, "small", "int"), NestedField(2, "large", "binary"))
        rows = [{"small": 1, "large": np.random.default_rng(number).bytes(50)} for number in range(1_000)]
        data, written = write_rows(schema, rows)
        sizes = written.metrics.column_sizes
        assert 0 < sizes[1] < 2_000
        assert 50_000 <= sizes[2] <= len(data)


class Fractions(pyorc.converters.ORCConverter):
    """Keeps the nanoseconds that Arrow gives, and nothing else."""

    @staticmethod
    def from_orc(seconds, nanoseconds, timezone):
        return nanoseconds

    @staticmethod
    def to_orc(obj, timezone):
        raise TypeError("only for reading")


def raw_nanos_are_negative(data):
    reader = pyorc.Reader(io.BytesIO(data), converters={pyorc.TypeKind.TIMESTAMP: Fractions})
    return any(nanos < 0 for (nanos,) in reader)

"""How files are read: timestamps of any year, stripes, filters, codecs, names, damage."""

import datetime as dt
import math
import sys
import zoneinfo
from decimal import Decimal
from hashlib import sha256

import pyarrow as pa
import pyarrow.orc as po
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.abc import ReadRequest, Split
from icefield.errors import InvalidArgument, InvalidFile, MissingPlugin, UnsupportedFeature
from icefield.expressions import bind, parse
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import decimal_from_unscaled
from icefield.types import DecimalType, ListType, MapType, NestedField, StructType, TimestampNanoType
from icefield_orc.compression import pack_plain
from icefield_orc.picking import decoded, select
from icefield_orc.protobuf import write_bytes, write_integer, write_varint
from orc_files import described, peer, peer_write, read, read_as, reader_of, write, write_rows
from outcomes import Outcomes

MICROS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
SMALL = {"write.orc.stripe-size-bytes": "20000", "write.orc.vectorized.batch-size": "100"}


class TestTimestamps:
    SCHEMA = Schema(NestedField(1, "a", "timestamp"), NestedField(2, "b", "timestamptz"), NestedField(3, "n", "int"))

    @pytest.mark.spec("ORC-04", "ORC-05", "ORC-07", "ORC-08")
    @settings(max_examples=60, deadline=None)
    @given(values=st.lists(st.none() | MICROS | st.integers(-3_000_000, 3_000_000), min_size=1, max_size=5))
    def test_any_timestamp_reads_back_here_and_at_a_peer(self, values):
        arrow = schema_to_arrow(self.SCHEMA)
        columns = [pa.array(values, arrow.field(0).type), pa.array(values, arrow.field(1).type)]
        table = pa.Table.from_arrays([*columns, pa.array(range(len(values)), pa.int32())], schema=arrow)
        data, _ = write(self.SCHEMA, table)
        assert read(data).column("a").cast(pa.int64()).to_pylist() == values
        assert read(data).column("b").cast(pa.int64()).to_pylist() == values
        epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        timestamps = [None if value is None else epoch + dt.timedelta(microseconds=value) for value in values]
        assert [row[:2] for row in peer(data)] == [(timestamp, timestamp) for timestamp in timestamps]

    @pytest.mark.spec("ORC-07", "ORC-08")
    @settings(max_examples=40, deadline=None)
    @given(
        values=st.lists(
            st.none() | MICROS.filter(lambda v: not -1_000_000 < v < 0 and v < 250_000_000_000_000_000),
            min_size=1,
            max_size=5,
        )
    )
    def test_any_timestamp_of_a_peer_is_read(self, values):
        epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        timestamps = [None if value is None else epoch + dt.timedelta(microseconds=value) for value in values]
        data = peer_write("struct<t:timestamp with local time zone>", [(timestamp,) for timestamp in timestamps])
        # The peer goes through floats, and loses the last microsecond of distant years on writing.
        written = [row[0] for row in peer(data)]
        assert read(data).column("t").to_pylist() == written

    @pytest.mark.spec("ORC-06")
    def test_nanoseconds_fall_back_to_the_microsecond_they_are_in_unless_the_unit_says_nanos(self):
        nanos = [-1, -1500, 1999, None]
        out = pa.BufferOutputStream()
        fields = [
            pa.field("micros", pa.timestamp("ns"), metadata={"iceberg.timestamp-unit": "MICROS"}),
            pa.field("absent", pa.timestamp("ns", "UTC")),
            pa.field("nanos", pa.timestamp("ns"), metadata={"iceberg.timestamp-unit": "NANOS"}),
        ]
        po.write_table(pa.table([pa.array(nanos, f.type) for f in fields], schema=pa.schema(fields)), out)
        table = read(out.getvalue().to_pybytes())
        assert table.schema.types == [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns")]
        for name, expected in (("micros", [-1, -2, 1, None]), ("absent", [-1, -2, 1, None]), ("nanos", nanos)):
            assert table.column(name).cast(pa.int64()).to_pylist() == expected

    @pytest.mark.spec("ORC-15")
    def test_nanoseconds_read_back(self):
        schema = Schema(NestedField(1, "t", TimestampNanoType()))
        table = pa.table([pa.array([-1, 2**63 - 1, None], pa.timestamp("ns"))], schema=schema_to_arrow(schema))
        assert read_as(schema, write(schema, table)[0]).column("t").cast(pa.int64()).to_pylist() == [
            -1,
            2**63 - 1,
            None,
        ]

    def test_distant_timestamps_inside_nested_columns_come_with_everything_next_to_them(self):
        inner = StructType(NestedField(11, "t", "timestamp"), NestedField(12, "d", "decimal(9,2)"),
                           NestedField(13, "c", "time"), NestedField(14, "u", "uuid"))  # fmt: skip
        schema = Schema(
            NestedField(1, "n", "long"),
            NestedField(2, "s", inner),
            NestedField(3, "l", ListType(4, "timestamptz")),
            NestedField(5, "m", MapType(6, "date", 7, "timestamp")),
        )
        far = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)
        rows = [
            {"n": 1, "s": {"t": far, "d": Decimal("1.25"), "c": dt.time(1), "u": b"u" * 16},
             "l": [far.replace(tzinfo=dt.UTC), None],
             "m": [(dt.date(1, 1, 1), far), (dt.date(2, 2, 2), None)]},
            {"n": 2, "s": None, "l": None, "m": None},
            {"n": None, "s": {"t": None, "d": None, "c": None, "u": None}, "l": [], "m": []},
        ]  # fmt: skip
        data, _ = write_rows(schema, rows)
        assert read_as(schema, data).to_pylist() == rows
        pruned = Schema(NestedField(1, "n", "long"), NestedField(2, "s", StructType(NestedField(11, "t", "timestamp"))))
        assert read_as(pruned, data).column("s").to_pylist() == [{"t": far}, None, {"t": None}]

    def test_without_pyorc_an_error_names_the_extra(self, monkeypatch):
        far = {"a": dt.datetime(9999, 12, 31), "b": None, "n": 1}
        data, _ = write_rows(self.SCHEMA, [far])
        monkeypatch.delitem(sys.modules, "icefield_orc.pyorc_columns", raising=False)
        monkeypatch.setitem(sys.modules, "pyorc", None)
        near = Schema(NestedField(3, "n", "int"))
        assert read_as(near, data).to_pylist() == [{"n": 1}]
        with pytest.raises(MissingPlugin, match=r'pip install "icefield-orc\[pyorc\]"'):
            read_as(self.SCHEMA, data)

    def test_near_timestamps_need_no_pyorc(self, monkeypatch):
        rows = [{"a": dt.datetime(2024, 1, 1), "b": None, "n": 1}]
        data, _ = write_rows(self.SCHEMA, rows)
        monkeypatch.delitem(sys.modules, "icefield_orc.pyorc_columns", raising=False)
        monkeypatch.setitem(sys.modules, "pyorc", None)
        assert read_as(self.SCHEMA, data).to_pylist() == rows

    def test_a_nanosecond_timestamp_out_of_range_is_damage(self):
        schema = described("struct<t:timestamp>", {1: {"iceberg.timestamp-unit": "NANOS"}})
        with pytest.raises(InvalidFile):
            read(peer_write(schema, [(dt.datetime(9999, 1, 1, tzinfo=dt.UTC),)]))

    def test_a_timestamp_without_zone_keeps_its_wall_clock_whatever_the_writers_zone(self):
        data = peer_write(
            "struct<t:timestamp>",
            [(dt.datetime(2020, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo("America/New_York")),)],
            timezone=zoneinfo.ZoneInfo("America/New_York"),
        )
        assert read(data).column("t").to_pylist() == [dt.datetime(2020, 7, 1, 12)]


class TestStripes:
    SCHEMA = Schema(NestedField(1, "n", "long", required=True), NestedField(2, "t", "timestamp"),
                    NestedField(3, "s", "string"),
                    NestedField(4, "p", StructType(NestedField(5, "d", "double"))))  # fmt: skip

    def file(self, rows=4_000):
        timestamp = dt.datetime(2020, 1, 1)
        return write_rows(
            self.SCHEMA,
            [{"n": n, "t": timestamp + dt.timedelta(microseconds=1500 * n),
              "s": f"{n:06}" + sha256(bytes(n)).hexdigest() if n % 9 else None,
              "p": {"d": n / 2} if n % 7 else None} for n in range(rows)],
            properties=SMALL, batch_rows=500,
        )  # fmt: skip

    @pytest.mark.spec("ORC-17")
    def test_the_offsets_of_stripes_are_what_peers_say(self):
        data, written = self.file()
        offsets = [stripe.bytes_offset for stripe in peer(data).iter_stripes()]
        assert len(offsets) > 3
        assert written.split_offsets == offsets
        with reader_of(data) as reader:
            assert reader.split_offsets == offsets

    @pytest.mark.spec("ORC-17")
    def test_a_split_reads_the_stripes_that_start_in_it_with_their_positions(self):
        data, written = self.file()
        second, third = written.split_offsets[1:3]
        first = peer(data).read_stripe(1).row_offset
        with reader_of(data) as reader:
            wanted = pa.schema([reader.schema.field("n")])
            request = ReadRequest(wanted, split=Split(second, third - second), positions=True)
            table = pa.Table.from_batches(reader.read(request))
        assert table.column("n").to_pylist() == table.column("_pos").to_pylist()
        assert table.column("n")[0].as_py() == first

    @pytest.mark.spec("ORC-18")
    @pytest.mark.parametrize(
        ("text", "rows"),
        [("n = 1234", [1234]), ("t = '2020-01-01T00:00:00.001500'", [1]), ("t > '2020-01-01T00:00:05.997'", [3999]),
         ("s < '000002'", [1]), ("s > '003998'", [*range(3999, 4000)]), ("p.d < 1.0", [1]), ("n < 0", [])],
    )  # fmt: skip
    def test_a_filter_skips_stripes_and_no_row_that_matches(self, text, rows):
        data, _ = self.file()
        found = read(data, row_filter=bind(self.SCHEMA, parse(text))).column("n").to_pylist()
        assert set(rows) <= set(found)
        assert len(found) < 2_000

    @pytest.mark.spec("ORC-18")
    @settings(max_examples=30, deadline=None)
    @given(values=st.lists(MICROS, min_size=1, max_size=4), data=st.data())
    def test_bounds_of_timestamps_are_never_narrower_than_the_timestamps(self, values, data):
        schema = Schema(NestedField(1, "t", "timestamp"))
        table = pa.table([pa.array(values, pa.timestamp("us"))], schema=schema_to_arrow(schema))
        file, _ = write(schema, table)
        with reader_of(file) as reader:
            metrics = reader.metrics()
            if metrics.lower_bounds:
                assert metrics.lower_bounds[1] <= min(values)
                assert metrics.upper_bounds[1] >= max(values)
        value = data.draw(st.sampled_from(values))
        timestamp = (dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)).isoformat(timespec="microseconds")
        bound = bind(schema, parse(f"t = '{timestamp}'"))
        assert value in read(file, row_filter=bound).column("t").cast(pa.int64()).to_pylist()

    @pytest.mark.spec("ORC-18")
    @pytest.mark.parametrize("values", [[math.nan, 1.0], [1.0, math.nan], [math.inf, -math.inf], [math.nan]])
    def test_a_nan_among_the_values_is_never_skipped(self, values):
        schema = Schema(NestedField(1, "d", "double"), NestedField(2, "f", "float"))
        data, _ = write_rows(schema, [{"d": value, "f": value} for value in values])
        for name in "df":
            for text in (f"{name} > 5", f"{name} is nan"):
                wanted = sum(math.isnan(value) for value in values)
                found = read(data, row_filter=bind(schema, parse(text))).column(name).to_pylist()
                assert sum(math.isnan(value) for value in found) == wanted

    @pytest.mark.spec("ORC-18")
    @pytest.mark.parametrize("precision", [5, 18, 19, 29, 38])
    def test_bounds_of_decimals_of_any_length_are_those_of_the_values(self, precision):
        schema = Schema(NestedField(1, "d", DecimalType(precision, 3)))
        values = [decimal_from_unscaled(unscaled, 3) for unscaled in (10**precision - 1, 1 - 10**precision, 0, 10)]
        data, _ = write_rows(schema, [{"d": value} for value in values])
        with reader_of(data) as reader:
            metrics = reader.metrics()
        assert (metrics.lower_bounds[1], metrics.upper_bounds[1]) == (values[1], values[0])
        assert read(data, row_filter=bind(schema, parse(f"d = {values[0]}"))).num_rows == 4
        assert metrics.lower_bounds[1].as_tuple().exponent == -3

    def test_metrics_of_a_footer_agree_with_those_that_were_gathered(self):
        data, written = self.file()
        with reader_of(data) as reader:
            stated = reader.metrics()
        gathered = written.metrics
        assert stated.record_count == 4_000
        assert stated.null_value_counts == gathered.null_value_counts
        assert stated.value_counts == gathered.value_counts
        for number in (1, 3, 5):
            assert stated.lower_bounds[number] == gathered.lower_bounds[number]
            assert stated.upper_bounds[number] == gathered.upper_bounds[number]
        assert gathered.lower_bounds[2] - 1000 < stated.lower_bounds[2] <= gathered.lower_bounds[2]
        assert gathered.upper_bounds[2] + 1000 > stated.upper_bounds[2] >= gathered.upper_bounds[2]


class TestColumns:
    def test_no_columns_give_rows_and_positions_alone(self):
        data = peer_write("struct<a:int>", [(n,) for n in range(10)])
        nothing = pa.schema([])
        with reader_of(data) as reader:
            assert [b.num_rows for b in reader.read(ReadRequest(nothing, batch_rows=4))] == [4, 4, 2]
            batches = list(reader.read(ReadRequest(nothing, batch_rows=4, positions=True)))
        assert pa.Table.from_batches(batches).column("_pos").to_pylist() == list(range(10))

    def test_only_the_asked_for_fields_of_structs_are_decoded(self):
        data = peer_write("struct<a:int,s:struct<x:int,y:struct<z:int,w:string>>,l:array<struct<p:int,q:int>>>", [])
        with reader_of(data) as reader:
            s, lists = reader.schema.field("s"), reader.schema.field("l")
            y = s.type.field("y")
            deep = s.with_type(pa.struct([y.with_type(pa.struct([y.type.field("w")]))]))
            element = lists.type.value_field
            some = lists.with_type(pa.list_(element.with_type(pa.struct([element.type.field("q")]))))
            selection = select(reader._root, pa.schema([some, deep]))
            assert selection.paths == ("l.q", "s.y.w")
            assert [node.name for node in decoded(reader._root, selection)] == ["", "s", "y", "w", "l", "element", "q"]

    def test_columns_whose_names_hold_dots_are_not_mixed_up(self):
        inner = StructType(NestedField(3, "b", "int"), NestedField(4, "c", "int"))
        schema = Schema(NestedField(1, "a.b", "int"), NestedField(2, "a", inner))
        data, _ = write_rows(schema, [{"a.b": 1, "a": {"b": 2, "c": 3}}])
        for keep, expected in ((0, {"a.b": 1}), (1, {"a": {"b": 2}})):
            with reader_of(data) as reader:
                field = reader.schema.field(keep)
                if keep:
                    field = field.with_type(pa.struct([field.type.field("b")]))
                assert pa.Table.from_batches(reader.read(ReadRequest(pa.schema([field])))).to_pylist() == [expected]

    def test_a_column_that_is_not_there_is_refused(self):
        with pytest.raises(InvalidArgument, match="'x'"):
            read(peer_write("struct<a:int>", [(1,)]), columns=pa.schema([("x", pa.int32())]))


class TestDamage:
    def tail(self, footer, codec=0):
        packed = pack_plain(footer, codec, 1 << 16)
        script = write_integer(1, len(packed)) + write_integer(2, codec) + write_integer(3, 1 << 16)
        script += write_integer(6, 6) + write_bytes(8000, b"ORC")
        return b"ORC" + packed + script + bytes([len(script)])

    def kind(self, kind, *children, names=()):
        parts = [write_integer(1, kind), write_bytes(2, b"".join(map(write_varint, children)))]
        return write_bytes(4, b"".join(parts + [write_bytes(3, name) for name in names]))

    @pytest.mark.parametrize("codec", [0, 1, 2, 4, 5])
    def test_types_nested_without_end_are_refused_before_they_reach_the_library(self, codec):
        depth = 90_000
        footer = self.kind(12, 1, names=[b"a"]) + b"".join(self.kind(10, n + 2) for n in range(depth)) + self.kind(3)
        with pytest.raises(InvalidFile, match="too deep"):
            read(self.tail(footer, codec))

    def test_a_number_with_more_digits_than_any_decimal_is_damage(self):
        least = pa.array([bytes(15) + b"\x80"], pa.binary(16)).view(pa.decimal128(38, 0))
        out = pa.BufferOutputStream()
        po.write_table(pa.table({"d": least}), out)
        with pytest.raises(InvalidFile, match="more digits"):
            read(out.getvalue().to_pybytes())

    def test_types_that_are_no_tree_are_refused(self):
        for footer in (
            self.kind(12, 0, names=[b"a"]),
            self.kind(12, 1, 1, names=[b"a", b"b"]) + self.kind(3),
            self.kind(12, 5, names=[b"a"]) + self.kind(3),
            self.kind(12, 1, names=[b"a"]) + self.kind(3) + self.kind(3),
            self.kind(12, 1) + self.kind(3),
        ):
            with pytest.raises(InvalidFile):
                read(self.tail(footer))

    def test_more_rows_than_memory_can_hold_are_refused(self):
        stripe = b"".join(write_integer(at, value) for at, value in ((1, 3), (2, 0), (3, 0), (4, 0), (5, 1 << 40)))
        types = self.kind(12, 1, names=[b"a" * 600]) + self.kind(4)
        footer = types + write_bytes(3, stripe) + write_integer(6, 1 << 40)
        with pytest.raises(UnsupportedFeature, match="1099511627776 rows"):
            read(self.tail(footer))

    def test_stripes_outside_the_file_are_refused(self):
        stripe = b"".join(write_integer(at, value) for at, value in ((1, 3), (3, 1 << 50), (5, 1)))
        footer = self.kind(12, 1, names=[b"a"]) + self.kind(4) + write_bytes(3, stripe) + write_integer(6, 1)
        with pytest.raises(InvalidFile, match="outside the file"):
            read(self.tail(footer))

    @pytest.mark.parametrize("codec", ["zlib", "snappy", "lz4", "zstd", "none"])
    def test_each_codec_is_written_and_read_and_its_damage_is_found(self, codec):
        schema = Schema(*(NestedField(n, f"column number {n}", "string") for n in range(1, 40)))
        rows = [{f.name: f"{f.name} {row}" for f in schema.fields} for row in range(20)]
        data, _ = write_rows(schema, rows, properties={"write.orc.compression-codec": codec})
        assert read(data).to_pylist() == rows
        out = pa.BufferOutputStream()
        table = pa.Table.from_pylist(rows)
        po.write_table(table, out, compression="uncompressed" if codec == "none" else codec)
        foreign = out.getvalue().to_pybytes()
        assert read(foreign).to_pylist() == rows
        outcomes = Outcomes()
        for at in range(len(foreign) - 400, len(foreign), 3):
            with outcomes.of(codec, InvalidFile, UnsupportedFeature):
                read(foreign[:at] + bytes([foreign[at] ^ 0x55]) + foreign[at + 1 :])
        outcomes.check()

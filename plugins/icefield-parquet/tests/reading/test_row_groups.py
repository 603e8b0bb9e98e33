"""Row groups: what splits and filters leave out, where positions stay, and what footers tell of values."""

import datetime as dt
import random
import struct
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icefield.abc import ReadRequest, Split
from icefield.expressions import bind, parse
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import FIELD_ID_KEY, as_input_file
from icefield.types import ListType, NestedField, StructType, parse_type
from parquet_files import read, reader_of, write, write_rows
from parquet_forge import forge

SMALL = {"write.parquet.row-group-size-bytes": "8000"}

POINTS = Schema(
    NestedField(1, "n", "long", required=True),
    NestedField(2, "s", StructType(NestedField(3, "a.b", "string"), NestedField(4, "d", "double"))),
)


def many_groups(rows=4_000):
    table = pa.Table.from_pylist(
        [{"n": n, "s": None if n % 7 == 0 else {"a.b": f"v{n:05d}", "d": n / 2}} for n in range(rows)],
        schema=schema_to_arrow(POINTS),
    )
    data, written = write(POINTS, table, batch_rows=100, properties=SMALL)
    assert len(written.split_offsets) > 5
    return table, data, written


class TestSplits:
    @pytest.mark.spec("PARQ-19", "MAN-46")
    def test_split_offsets_are_where_row_groups_start(self):
        _, data, written = many_groups()
        footer = pq.ParquetFile(pa.BufferReader(data)).metadata
        starts = []
        for position in range(footer.num_row_groups):
            column = footer.row_group(position).column(0)
            starts.append(min(filter(None, (column.dictionary_page_offset, column.data_page_offset))))
        assert written.split_offsets == starts == sorted(starts)
        with reader_of(data) as reader:
            assert reader.split_offsets == starts

    @pytest.mark.spec("RSV-03")
    def test_any_division_of_the_bytes_reads_each_row_once_at_its_position(self):
        _, data, _ = many_groups()
        rng = random.Random(3)
        for _ in range(6):
            cuts = sorted({0, len(data), *(rng.randrange(len(data)) for _ in range(rng.randrange(12)))})
            found = []
            for start, end in pairwise(cuts):
                with reader_of(data) as reader:
                    request = ReadRequest(reader.schema, split=Split(start, end - start), positions=True)
                    for batch in reader.read(request):
                        assert batch["n"].to_pylist() == batch["_pos"].to_pylist()
                        found += batch["n"].to_pylist()
            assert found == list(range(4_000))

    @pytest.mark.spec("RSV-03")
    def test_positions_stay_absolute_when_row_groups_are_skipped(self):
        _, data, _ = many_groups()
        condition = bind(POINTS, parse("n < 50 or (n >= 2000 and n < 2010) or n > 3990"))
        for options in ({}, {"split": Split(len(data) // 3, len(data))}):
            part = read(data, row_filter=condition, positions=True, batch_rows=77, **options)
            assert 0 < part.num_rows < 1_500
            assert part["n"].to_pylist() == part["_pos"].to_pylist()

    def test_rows_are_counted_and_numbered_without_reading_a_page(self):
        _, data, _ = many_groups()
        broken = data[:4] + bytes(1000) + data[1004:]  # the first pages are gone; the footer is whole
        nothing = pa.schema([])
        with reader_of(broken) as reader:
            batches = list(reader.read(ReadRequest(nothing, batch_rows=150)))
            assert sum(batch.num_rows for batch in batches) == 4_000
            numbered = list(reader.read(ReadRequest(nothing, batch_rows=150, positions=True)))
        assert [n for batch in numbered for n in batch.column("_pos").to_pylist()] == list(range(4_000))


class CountingFile:
    """A Python file that counts what is read of it, as a remote file would be."""

    def __init__(self, data):
        self.source = pa.BufferReader(data)
        self.bytes = 0

    def read(self, size=-1):
        data = self.source.read(None if size < 0 else size)
        self.bytes += len(data)
        return data

    def __getattr__(self, name):
        return getattr(self.source, name)


class TestWhatIsRead:
    @pytest.mark.spec("PRJ-14", "FS-02")
    def test_one_leaf_of_a_wide_file_fetches_little_of_it(self):
        kind = StructType(*(NestedField(10 + n, f"f{n}", "double") for n in range(20)))
        schema = Schema(NestedField(1, "s", kind), NestedField(2, "n", "long"))
        rng = random.Random(1)
        rows = [{"s": {f"f{n}": rng.random() for n in range(20)}, "n": number} for number in range(4_000)]
        data, _ = write_rows(schema, rows)
        from icefield_parquet.parquet_format import ParquetFormat

        source = CountingFile(data)
        with ParquetFormat().open_reader(as_input_file(source, is_remote=True), "memory://wide") as reader:
            held = reader.schema.field("s")
            wanted = pa.schema([held.with_type(pa.struct([held.type.field("f7")]))])
            table = pa.Table.from_batches(reader.read(ReadRequest(wanted)))
        assert table["s"].to_pylist() == [{"f7": row["s"]["f7"]} for row in rows]
        assert source.bytes < 64 * 1024 + len(data) / 6

    def test_a_remote_file_is_read_one_row_group_at_a_time(self):
        table, data, _ = many_groups()
        from icefield_parquet.parquet_format import ParquetFormat

        source = CountingFile(data)
        with ParquetFormat().open_reader(as_input_file(source, is_remote=True), "memory://f") as reader:
            batches = reader.read(ReadRequest(reader.schema))
            next(batches)
            assert source.bytes < 64 * 1024 + len(data) / 3
            rest = sum(batch.num_rows for batch in batches)
        assert 0 < rest < table.num_rows

    def test_a_literal_dot_in_a_name_is_no_path(self):
        schema = Schema(
            NestedField(1, "a", StructType(NestedField(2, "b", "int"))),
            NestedField(3, "a.b", "int"),
        )
        data, _ = write_rows(schema, [{"a": {"b": 1}, "a.b": 2}])
        with reader_of(data) as reader:
            dotted, nested = pa.schema([reader.schema.field(1)]), pa.schema([reader.schema.field(0)])
        assert read(data, columns=dotted).to_pylist() == [{"a.b": 2}]
        assert read(data, columns=nested).to_pylist() == [{"a": {"b": 1}}]

    def test_batches_are_bounded_by_bytes_as_well(self):
        schema = Schema(NestedField(1, "b", "binary"))
        rows = [{"b": bytes([n % 256]) * 1_000_000} for n in range(75)]
        data, _ = write_rows(schema, rows, properties={"write.parquet.compression-codec": "snappy"})
        with reader_of(data) as reader:
            sizes = [batch.nbytes for batch in reader.read(ReadRequest(reader.schema))]
        assert max(sizes) < 70 << 20
        assert sum(sizes) >= 75_000_000


TYPES = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "date": st.dates(),
    "time": st.times(),
    "timestamp": st.datetimes(),
    "timestamptz": st.datetimes(timezones=st.just(dt.UTC)),
    "string": st.text(max_size=4),
    "binary": st.binary(max_size=4),
    "uuid": st.binary(min_size=16, max_size=16),
    "fixed[3]": st.binary(min_size=3, max_size=3),
    "boolean": st.booleans(),
    "decimal(9,2)": st.decimals(-9999999, 9999999, places=2),
    "decimal(18,0)": st.decimals(-(10**17), 10**17, places=0),
    "decimal(38,10)": st.decimals(-(10**20), 10**20, places=10),
}


@pytest.mark.spec("MET-02", "MET-03", "MET-14", "MET-24", "PARQ-19")
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from(sorted(TYPES)), data=st.data())
def test_what_the_footer_tells_agrees_with_what_the_writer_gathered(kind, data):
    schema = Schema(NestedField(1, "v", parse_type(kind)))
    rows = [{"v": value} for value in data.draw(st.lists(st.none() | TYPES[kind], min_size=1, max_size=12))]
    table = pa.Table.from_pylist(rows, schema=schema_to_arrow(schema))
    file, written = write(schema, table, batch_rows=3, properties={"write.parquet.row-group-size-bytes": "1"})
    with reader_of(file) as reader:
        stated = reader.metrics()
    gathered = written.metrics
    assert stated.record_count == gathered.record_count == len(rows)
    assert stated.value_counts == gathered.value_counts
    assert stated.null_value_counts == gathered.null_value_counts
    assert stated.column_sizes == gathered.column_sizes
    # The footer may keep silent (of a float group of nothing but NaN, say), and must not contradict.
    if stated.lower_bounds:
        # Equal as numbers: a zero in a footer may have either sign.
        assert stated.lower_bounds == gathered.lower_bounds
        assert stated.upper_bounds == gathered.upper_bounds
    elif kind not in ("float", "double", "string"):
        assert not gathered.lower_bounds


OPERATORS = ("<", "<=", ">", ">=", "=", "!=")


@pytest.mark.spec("PLT-63", "MET-02")
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from(["int", "double", "string", "decimal(9,2)", "date"]), data=st.data())
def test_a_row_group_with_a_matching_row_is_never_skipped(kind, data):
    schema = Schema(NestedField(1, "v", parse_type(kind)), NestedField(2, "n", "int"))
    drawn = data.draw(st.lists(st.none() | TYPES[kind], min_size=1, max_size=15))
    table = pa.Table.from_pylist(
        [{"v": value, "n": n} for n, value in enumerate(drawn)], schema=schema_to_arrow(schema)
    )
    file, _ = write(schema, table, batch_rows=2, properties={"write.parquet.row-group-size-bytes": "1"})
    literal = data.draw(TYPES[kind].filter(lambda value: value == value))
    operator = data.draw(st.sampled_from(OPERATORS))
    from icefield.expressions import (
        EqualTo,
        GreaterThan,
        GreaterThanOrEqual,
        LessThan,
        LessThanOrEqual,
        NotEqualTo,
        evaluate,
    )

    classes = dict(zip(OPERATORS, (LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual, EqualTo, NotEqualTo),
                       strict=True))  # fmt: skip
    condition = bind(schema, classes[operator]("v", literal))
    matching = table.filter(evaluate(condition, table))["n"].to_pylist()
    found = read(file, row_filter=condition)["n"].to_pylist()
    assert set(matching) <= set(found)


class TestStatistics:
    """Statistics of other writers."""

    def filtered(self, message, rows, text, schema, **options):
        return read(forge(message, rows, **options), row_filter=bind(schema, parse(text))).num_rows

    @pytest.mark.spec("PLT-63", "MET-07", "PLT-64")
    def test_statistics_skip_what_they_exclude(self):
        schema = Schema(NestedField(1, "v", "int"))
        claims = {"v": {"min_value": struct.pack("<i", 5), "max_value": struct.pack("<i", 9), "null_count": 0}}
        message = "optional int32 v = 1;"
        assert self.filtered(message, [{"v": 5}], "v = 4", schema, statistics=claims) == 0
        assert self.filtered(message, [{"v": 5}], "v is null", schema, statistics=claims) == 0
        assert self.filtered(message, [{"v": 5}], "v = 7", schema, statistics=claims) == 1

    @pytest.mark.spec("MET-15", "PLT-63", "PLT-44")
    @pytest.mark.parametrize(
        "message", ["required int96 v = 1;", "required fixed_len_byte_array(12) v (INTERVAL) = 1;"]
    )
    def test_statistics_without_a_defined_order_are_not_used(self, message):
        data = forge(message, [{"v": bytes(12)}], statistics={"v": {"min_value": bytes(12), "max_value": bytes(12)}})
        with reader_of(data) as reader:
            assert reader.metrics().lower_bounds == {}

    @pytest.mark.spec("PLT-65")
    def test_a_missing_count_of_nulls_is_not_none(self):
        schema = Schema(NestedField(1, "v", "int"))
        claims = {"v": {"min_value": struct.pack("<i", 5), "max_value": struct.pack("<i", 5)}}
        data = forge("optional int32 v = 1;", [{"v": 5}, {"v": None}], statistics=claims)
        assert read(data, row_filter=bind(schema, parse("v is null"))).num_rows == 2
        with reader_of(data) as reader:
            assert reader.metrics().null_value_counts == {}

    @pytest.mark.spec("PLT-64", "MET-09", "MET-10")
    @pytest.mark.parametrize("low", [float("nan"), 1.0])
    def test_a_nan_among_the_statistics_tells_nothing(self, low):
        schema = Schema(NestedField(1, "v", "double"))
        high = 2.0 if low != low else float("nan")
        claims = {"v": {"min_value": struct.pack("<d", low), "max_value": struct.pack("<d", high), "null_count": 0}}
        data = forge("required double v = 1;", [{"v": 7.0}], statistics=claims)
        assert read(data, row_filter=bind(schema, parse("v = 7.0"))).num_rows == (1 if high != high else 0)
        with reader_of(data) as reader:
            assert reader.metrics().lower_bounds == {}

    @pytest.mark.spec("PLT-64", "MET-12")
    def test_a_positive_zero_minimum_may_hide_a_negative_one(self):
        claims = {"v": {"min_value": struct.pack("<d", 0.0), "max_value": struct.pack("<d", -0.0), "null_count": 0}}
        with reader_of(forge("required double v = 1;", [{"v": 0.0}], statistics=claims)) as reader:
            metrics = reader.metrics()
        assert (str(metrics.lower_bounds[1]), str(metrics.upper_bounds[1])) == ("-0.0", "0.0")

    @pytest.mark.spec("MET-14")
    @pytest.mark.parametrize(
        ("physical", "precision", "low", "high"),
        [
            ("int32", 5, struct.pack("<i", -128), struct.pack("<i", 7)),
            ("int64", 12, struct.pack("<q", -128), struct.pack("<q", 7)),
            ("fixed_len_byte_array(13)", 30, (-128).to_bytes(13, "big", signed=True), (7).to_bytes(13, "big")),
        ],
    )
    def test_decimals_are_decoded_from_each_storage(self, physical, precision, low, high):
        value = -128 if physical.startswith("int") else low
        claims = {"v": {"min_value": low, "max_value": high, "null_count": 0}}
        message = f"required {physical} v (DECIMAL({precision},2)) = 1;"
        with reader_of(forge(message, [{"v": value}], statistics=claims)) as reader:
            metrics = reader.metrics()
        assert (metrics.lower_bounds[1], metrics.upper_bounds[1]) == (Decimal("-1.28"), Decimal("0.07"))

    @pytest.mark.spec("PRJ-16", "SCH-10", "SCH-12")
    @pytest.mark.parametrize(
        ("held", "kind", "text"),
        [("int32 v", "long", "v = 4000000000"), ("float v", "double", "v = 1e300"),
         ("int32 v (DECIMAL(9,2))", "decimal(18,2)", "v = 12345678901.00"), ("int32 v (DATE)", "timestamp",
          "v = '2020-01-01T00:00:00'")],
    )  # fmt: skip
    def test_a_filter_of_the_promoted_type_is_compared_with_statistics_of_the_old_one(self, held, kind, text):
        packed = struct.pack("<f", 1.0) if "float" in held else struct.pack("<i", 1)
        claims = {"v": {"min_value": packed, "max_value": packed, "null_count": 0}}
        schema = Schema(NestedField(1, "v", parse_type(kind)))
        rows = [{"v": 1.0 if "float" in held else 1}]
        assert self.filtered(f"required {held} = 1;", rows, text, schema, statistics=claims) == 0
        assert self.filtered(f"required {held} = 1;", rows, "v is not null", schema, statistics=claims) == 1

    def test_ids_of_a_name_mapping_lead_to_the_statistics(self):
        schema = Schema(NestedField(33, "renamed", "int"))
        claims = {"old": {"min_value": struct.pack("<i", 5), "max_value": struct.pack("<i", 9), "null_count": 0}}
        data = forge("required int32 other; required int32 old;", [{"other": 1, "old": 5}], statistics=claims)
        with reader_of(data) as reader:
            columns = pa.schema([reader.schema.field("old").with_metadata({FIELD_ID_KEY: b"33"})])
        assert read(data, columns=columns, row_filter=bind(schema, parse("renamed = 1"))).num_rows == 0
        assert read(data, columns=columns, row_filter=bind(schema, parse("renamed = 5"))).num_rows == 1

    @pytest.mark.spec("MET-13")
    def test_leaves_of_lists_have_sizes_and_no_bounds(self):
        schema = Schema(NestedField(1, "l", ListType(2, "int")))
        data, _ = write_rows(schema, [{"l": [1, 2]}, {"l": None}])
        with reader_of(data) as reader:
            metrics = reader.metrics()
        assert set(metrics.column_sizes) == {2}
        assert metrics.value_counts == {}
        assert metrics.lower_bounds == {}

    def test_a_file_without_ids_tells_its_number_of_rows_only(self):
        with reader_of(forge("required int32 a;", [{"a": 1}])) as reader:
            metrics = reader.metrics()
        assert metrics.record_count == 1
        assert metrics.column_sizes == {}

"""Statistics of other writers are used where their order is known, for skipping row groups and for added files."""

import datetime as dt
import itertools
import struct
from decimal import Decimal

import pytest
from icefield import MemoryFileSystem
from icefield.expressions import EqualTo, bind, parse
from icefield.schema import Schema
from icefield.toolkit import value_from_bytes
from icefield.types import NestedField, parse_type
from parquet_files import read, read_as, reader_of
from parquet_forge import forge
from tables import new_table

NUMBERS = {"int32": "<i", "int64": "<q", "float": "<f", "double": "<d"}
locations = (f"memory://statistic-orders/{number}.parquet" for number in itertools.count())


def packed(column, value):
    layout = NUMBERS.get(column.split()[0])
    return struct.pack(layout, value) if layout else value


def one(kind):
    return Schema(NestedField(1, "v", parse_type(kind)))


def claiming(column, low, high, values, *, names=("min_value", "max_value"), **options):
    """A file of one required column whose statistics claim two bounds."""
    claims = dict(zip(names, (packed(column, low), packed(column, high)), strict=True)) | {"null_count": 0}
    return forge(f"required {column} = 1;", [{"v": value} for value in values], statistics={"v": claims}, **options)


def bounds(data):
    with reader_of(data) as reader:
        metrics = reader.metrics()
    return metrics.lower_bounds.get(1), metrics.upper_bounds.get(1)


def found(data, text, kind):
    return read(data, row_filter=bind(one(kind), parse(text))).num_rows


class TestOrders:
    @pytest.mark.spec("PLT-12", "PLT-13", "PLT-63")
    @pytest.mark.parametrize("annotation", ["UINT_32", "INTEGER(32,false)"])
    def test_unsigned_integers_are_compared_without_a_sign(self, annotation):
        data = claiming(f"int32 v ({annotation})", 1, -1, [1, -1])
        assert bounds(data) == (1, 2**32 - 1)
        assert found(data, "v = 4294967295", "long") == 2
        assert found(data, "v > 2147483648", "long") == 2
        assert found(data, "v < 1", "long") == 0

    @pytest.mark.spec("PLT-12", "PLT-13")
    def test_unsigned_integers_of_64_bits_have_statistics_that_are_never_taken_for_signed_ones(self):
        data = claiming("int64 v (UINT_64)", 1, -1, [1, -1])
        assert found(data, "v = -1", "long") == 2
        assert bounds(data) == (None, None), "no type of the table format holds such a bound"

    @pytest.mark.spec("PLT-12")
    @pytest.mark.parametrize("annotation", ["INT_8", "INT_16", "INT_32", "INTEGER(8,true)", "INTEGER(32,true)"])
    def test_signed_integers_are_compared_with_their_sign(self, annotation):
        data = claiming(f"int32 v ({annotation})", -5, 7, [-5, 7])
        assert bounds(data) == (-5, 7)
        assert found(data, "v = -5", "int") == 2
        assert found(data, "v = -6", "int") == 0

    @pytest.mark.spec("PLT-11", "PLT-12")
    def test_bounds_beyond_a_width_that_cross_over_are_not_used(self):
        # As unsigned numbers 5 lies below -1, which no writer should have stored.
        data = claiming("int32 v (UINT_8)", 5, -1, [5, -1, 9])
        assert bounds(data) == (None, None)
        assert found(data, "v = 9", "int") == 3

    @pytest.mark.spec("PLT-42", "PLT-25", "PLT-27")
    @pytest.mark.parametrize(
        ("column", "kind", "low", "high", "expected"),
        [
            ("int64 v (TIMESTAMP(false,MICROS))", "timestamp", -86_400_000_000, 1, (-86_400_000_000, 1)),
            ("int64 v (TIMESTAMP_MILLIS)", "timestamptz", -86_400_000, 1, (-86_400_000_000, 1_000)),
            ("int32 v (DATE)", "date", -1, 1, (-1, 1)),
            ("int32 v (TIME_MILLIS)", "time", 1, 2, (1_000, 2_000)),
        ],
    )
    def test_moments_before_1970_are_the_lesser_ones(self, column, kind, low, high, expected):
        data = claiming(column, low, high, [low, high])
        assert bounds(data) == expected
        (first, last) = read_as(one(kind), data)["v"].to_pylist()
        for value in (first, last):
            condition = bind(one(kind), EqualTo("v", value))
            assert read(data, row_filter=condition).num_rows == 2
        earlier = {"date": "1969-12-30", "timestamp": "1969-12-30T23:59:59.999999", "time": "00:00:00"}
        text = f"v <= '{earlier.get(kind, '1969-12-30T23:59:59.999999+00:00')}'"
        assert found(data, text, kind) == 0

    @pytest.mark.spec("PLT-22", "PLT-20")
    @pytest.mark.parametrize("size", [2, 5, 16])
    @pytest.mark.parametrize("physical", ["fixed_len_byte_array({})", "binary"])
    def test_decimals_are_compared_as_numbers_and_not_as_bytes(self, physical, size):
        low, high = (value.to_bytes(size, "big", signed=True) for value in (-128, 7))
        assert low > high, "as bytes they lie the other way round"
        data = claiming(f"{physical.format(size)} v (DECIMAL(4,2))", low, high, [low, high])
        assert bounds(data) == (Decimal("-1.28"), Decimal("0.07"))
        assert found(data, "v = -1.28", "decimal(4,2)") == 2
        assert found(data, "v = 0.00", "decimal(4,2)") == 2
        assert found(data, "v = -1.29", "decimal(4,2)") == 0
        assert found(data, "v > 0.07", "decimal(4,2)") == 0

    @pytest.mark.spec("PLT-22")
    def test_decimals_that_were_compared_as_bytes_tell_nothing(self):
        data = claiming("binary v (DECIMAL(4,2))", b"\x07", b"\x80", [b"\x07", b"\x80", b"\x09"])
        assert bounds(data) == (None, None)
        assert found(data, "v = 0.09", "decimal(4,2)") == 3

    @pytest.mark.spec("PLT-63", "PLT-05", "PLT-06", "PLT-45")
    @pytest.mark.parametrize("annotation", ["UTF8", "ENUM", "JSON", "@STRING"])
    def test_texts_are_compared_by_their_bytes_without_sign(self, annotation):
        data = claiming(f"binary v ({annotation})", b"z", "å".encode(), [b"z", "å".encode()])
        assert bounds(data) == ("z", "å")
        assert found(data, "v = 'å'", "string") == 2
        assert found(data, "v = 'a'", "string") == 0

    @pytest.mark.spec("PLT-63", "PLT-44", "PLT-66", "MET-15")
    @pytest.mark.parametrize("names", [("min_value", "max_value"), ("min", "max")])
    @pytest.mark.parametrize(
        ("column", "kind", "size"),
        [
            ("fixed_len_byte_array(12) v (INTERVAL)", "fixed[12]", 12),
            ("int96 v", "timestamp", 12),
            ("fixed_len_byte_array(2) v (FLOAT16)", "float", 2),
            ("binary v (GEOMETRY)", "binary", 4),
            ("binary v (GEOGRAPHY)", "binary", 4),
        ],
    )  # fmt: skip
    def test_what_has_no_order_has_no_bounds(self, column, kind, size, names):
        data = claiming(column, bytes(size), bytes(size), [b"\x01" * size], names=names)
        assert bounds(data) == (None, None)
        text = {"timestamp": "v = '2020-01-01T00:00:00'", "float": "v = 2.0"}.get(kind)
        if text is not None:
            assert found(data, text, kind) == 1


SIGNED = [("int32 v", 5, 9), ("int64 v", -5, 9), ("double v", -1.5, 2.5), ("int32 v (DATE)", 5, 9),
          ("int64 v (TIMESTAMP_MICROS)", -5, 9)]  # fmt: skip
UNSIGNED = [
    ("int32 v (UINT_32)", 5, 9),
    ("binary v (UTF8)", b"a", b"b"),
    ("binary v", b"a", b"b"),
    ("fixed_len_byte_array(2) v", b"aa", b"bb"),
    ("fixed_len_byte_array(2) v (DECIMAL(4,2))", b"\0\1", b"\0\2"),
]


class TestDeprecatedStatistics:
    @pytest.mark.spec("PLT-64")
    @pytest.mark.parametrize(("column", "low", "high"), SIGNED)
    def test_they_are_used_for_what_is_compared_with_a_sign(self, column, low, high):
        data = claiming(column, low, high, [low], names=("min", "max"), ordered=False)
        assert None not in bounds(data)

    @pytest.mark.spec("PLT-64")
    def test_signed_decimals_are_used_where_they_are_integers(self):
        data = claiming("int32 v (DECIMAL(4,2))", -5, 9, [-5], names=("min", "max"), ordered=False)
        assert bounds(data) == (Decimal("-0.05"), Decimal("0.09"))

    @pytest.mark.spec("PLT-64", "PLT-63")
    @pytest.mark.parametrize(("column", "low", "high"), UNSIGNED)
    @pytest.mark.parametrize("ordered", [True, False])
    def test_they_are_not_used_for_anything_else(self, column, low, high, ordered):
        data = claiming(column, low, high, [low], names=("min", "max"), ordered=ordered)
        assert bounds(data) == (None, None)

    @pytest.mark.spec("PLT-64")
    @pytest.mark.parametrize(("column", "low", "high"), UNSIGNED)
    def test_a_footer_that_tells_no_order_tells_no_bounds_of_these(self, column, low, high):
        data = claiming(column, low, high, [low], ordered=False)
        assert bounds(data) == (None, None)
        assert None not in bounds(claiming(column, low, high, [low])), "with an order they are used"


# The column, the table's type, two stored values, and what the manifest is to say of them.
ADDED = [
    ("int32 v (UINT_32)", "long", (1, -1), (1, 2**32 - 1)),
    ("int32 v (UINT_8)", "int", (1, 255), (1, 255)),
    ("int32 v", "long", (-1, 5), (-1, 5)),
    ("float v", "double", (-1.5, 2.0), (-1.5, 2.0)),
    ("int32 v (TIME_MILLIS)", "time", (1, 5), (1_000, 5_000)),
    ("int64 v", "time", (1, 5), (1, 5)),
    ("int64 v (TIMESTAMP_MILLIS)", "timestamp", (-1, 5), (-1_000, 5_000)),
    ("int64 v (TIMESTAMP(false,MICROS))", "timestamptz", (-1, 5), (-1, 5)),
    ("int64 v (TIMESTAMP(true,NANOS))", "timestamptz", (-1_000, 5_000), (-1, 5)),
    ("int64 v (TIMESTAMP(true,NANOS))", "timestamptz", (5_000, 6_000), (5, 6)),
    ("int64 v (TIMESTAMP(true,NANOS))", "timestamptz_ns", (-1_000, 5_000), (-1_000, 5_000)),
    ("int64 v (TIMESTAMP(false,MICROS))", "timestamp_ns", (-1, 5), (-1_000, 5_000)),
    ("int64 v (TIMESTAMP(false,MICROS))", "timestamp_ns", (5, 6), (5_000, 6_000)),
    ("int64 v", "timestamp", (1, 5), (1, 5)),
    ("int32 v", "date", (1, 5), (1, 5)),
    ("int32 v (DATE)", "timestamp", (1, 5), (86_400_000_000, 432_000_000_000)),
    ("int32 v (DATE)", "timestamp_ns", (-1, 5), (-86_400_000_000_000, 432_000_000_000_000)),
    ("binary v", "string", (b"z", "å".encode()), ("z", "å")),
    ("binary v (UTF8)", "binary", (b"z", "å".encode()), (b"z", "å".encode())),
    ("binary v (ENUM)", "string", (b"z", "å".encode()), ("z", "å")),
    ("binary v", "uuid", (bytes(16), b"\xff" * 16), (bytes(16), b"\xff" * 16)),
    ("fixed_len_byte_array(2) v", "binary", (b"aa", b"\xff\xff"), (b"aa", b"\xff\xff")),
    ("int32 v (DECIMAL(5,2))", "decimal(38,2)", (-1, 5), (Decimal("-0.01"), Decimal("0.05"))),
    ("fixed_len_byte_array(3) v (DECIMAL(5,2))", "decimal(5,2)", (b"\xff\xff\xff", b"\0\0\5"),
     (Decimal("-0.01"), Decimal("0.05"))),
    ("binary v (DECIMAL(5,2))", "decimal(9,2)", (b"\xff", b"\0\0\5"), (Decimal("-0.01"), Decimal("0.05"))),
    ("int96 v", "timestamp", (bytes(8) + struct.pack("<i", 2440588),) * 2, (None, None)),
    ("fixed_len_byte_array(2) v (FLOAT16)", "float", (struct.pack("<e", -1.5), struct.pack("<e", 2)), (None, None)),
    ("fixed_len_byte_array(12) v (INTERVAL)", "fixed[12]", (bytes(12), b"\1" * 12), (None, None)),
    ("binary v (GEOMETRY)", "geometry", (b"a", b"b"), (None, None)),
    ("binary v", "geography", (b"a", b"b"), (None, None)),
]  # fmt: skip


class TestAddedFiles:
    @pytest.mark.spec("MET-14", "MET-15", "PLT-63", "PLT-42", "PLT-22", "PLT-12", "SVS-18")
    @pytest.mark.parametrize(("column", "kind", "stored", "expected"), ADDED)
    def test_bounds_are_those_of_the_tables_type_and_lose_no_row(self, column, kind, stored, expected):
        location = next(locations)
        data = claiming(column, *stored, stored)
        MemoryFileSystem.files[location] = (data, 0)
        table = new_table(schema=one(kind), properties={"format-version": "3"})
        table.add_files([location])
        (task,) = table.scan().plan_files(include_stats=True)
        held = [(task.file.lower_bounds or {}).get(1), (task.file.upper_bounds or {}).get(1)]
        assert tuple(None if each is None else value_from_bytes(parse_type(kind), each) for each in held) == expected
        assert task.file.null_value_counts == {1: 0}
        values = table.scan().to_arrow()["v"]
        if kind.startswith("geo"):
            return
        for value in {str(each): each for each in values.to_pylist()}.values():
            rows = table.scan(EqualTo("v", value)).to_arrow()["v"].to_pylist()
            assert value in rows

    def test_bounds_that_do_not_convert_are_left_out_and_the_file_is_added(self):
        location = next(locations)
        column = "int64 v (TIMESTAMP(true,NANOS))"
        MemoryFileSystem.files[location] = (claiming(column, 1_001, 5_000, [2_000, 5_000]), 0)
        table = new_table(schema=one("timestamptz"))
        table.add_files([location])
        (task,) = table.scan().plan_files(include_stats=True)
        assert not task.file.lower_bounds
        assert not task.file.upper_bounds
        assert table.scan("v < '1970-01-01T00:00:00.000003+00:00'").to_arrow()["v"].to_pylist() == [
            dt.datetime(1970, 1, 1, 0, 0, 0, 2, dt.UTC)
        ]

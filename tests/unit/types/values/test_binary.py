import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from format_strategies import INT64, decimals, primitives, same, typed_values, values
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
    parse_type,
)
from icefield.types.arrow.types import to_arrow_type
from icefield.types.values import (
    GeoPoint,
    from_arrow_array,
    from_bytes_array,
    geo_point_from_bytes,
    geo_point_to_bytes,
    to_arrow_array,
    to_internal,
    unscaled,
    value_from_bytes,
    value_to_bytes,
)
from icefield_maintenance.theta.binary_values import to_bytes_array
from vectors import VECTORS

SINGLE = VECTORS["single_value_binary"]
EVERY_SVS = [f"SVS-{n:02d}" for n in range(1, 16)]


def kind_of(text):
    return parse_type(text.replace("fixed(4)", "fixed[4]"))


def internal_of(case):
    kind = kind_of(case["type"])
    in_hex = isinstance(kind, (BinaryType, FixedType))
    return to_internal(kind, bytes.fromhex(case["value"]) if in_hex else case["value"])


@pytest.mark.spec(*EVERY_SVS)
@pytest.mark.parametrize("case", SINGLE, ids=lambda case: f"{case['type']} {case['value']}")
def test_one_value_becomes_the_vectors_bytes_and_comes_back(case):
    kind, internal, data = kind_of(case["type"]), internal_of(case), bytes.fromhex(case["hex"])
    assert internal == case.get("internal", internal)
    assert value_to_bytes(kind, internal) == data
    assert same(value_from_bytes(kind, data), internal)
    for other in case.get("decode_also", []):
        assert value_from_bytes(kind, bytes.fromhex(other)) == internal


@pytest.mark.spec(*EVERY_SVS)
@pytest.mark.parametrize("kind", sorted({case["type"] for case in SINGLE}))
@pytest.mark.parametrize("make", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_a_column_of_bytes_decodes_to_the_vectors_values(kind, make):
    cases = [case for case in SINGLE if case["type"] == kind]
    data = pa.array([None, *(bytes.fromhex(case["hex"]) for case in cases), None], make)
    decoded = from_bytes_array(kind_of(kind), data)
    assert decoded.type == to_arrow_type(kind_of(kind))
    decoded.validate(full=True)
    assert all(map(same, from_arrow_array(kind_of(kind), decoded), [None, *map(internal_of, cases), None]))
    assert to_bytes_array(kind_of(kind), decoded).to_pylist() == data.to_pylist()


def as_bytes(kind, made):
    return pa.array([None if one is None else value_to_bytes(kind, one) for one in made], pa.binary())


@st.composite
def columns(draw):
    kind = draw(primitives())
    return kind, draw(st.lists(st.none() | values(kind), max_size=8))


@pytest.mark.spec("SVS-01")
@given(columns(), st.integers(0, 3))
def test_columns_encode_and_decode_as_single_values_do(column, skipped):
    kind, made = column
    data = as_bytes(kind, made)[skipped:]
    decoded = from_bytes_array(kind, data)
    decoded.validate(full=True)
    assert all(map(same, from_arrow_array(kind, decoded), made[skipped:]))
    encoded = to_bytes_array(kind, to_arrow_array(kind, made)[skipped:])
    encoded.validate(full=True)
    assert encoded.equals(data)


@given(typed_values())
def test_a_value_survives_its_bytes(pair):
    kind, internal = pair
    assert same(value_from_bytes(kind, value_to_bytes(kind, internal)), internal)


@pytest.mark.spec("SVS-18", "SCH-10", "SCH-11", "SCH-12", "SCH-14")
@pytest.mark.parametrize("case", VECTORS["promoted_bounds"], ids=lambda case: case["current_type"])
def test_bytes_written_before_a_promotion_are_stated_by_their_length(case):
    kind, data = parse_type(case["current_type"]), bytes.fromhex(case["hex"])
    expected = to_internal(kind, case["value"])
    assert value_from_bytes(kind, data) == expected
    now = value_to_bytes(kind, to_internal(kind, 7))
    mixed = pa.array([data, now, None, data])
    assert from_arrow_array(kind, from_bytes_array(kind, mixed)) == [expected, to_internal(kind, 7), None, expected]


@pytest.mark.spec("SVS-18", "SCH-14")
@pytest.mark.parametrize("kind", [TimestampType(), TimestampNanoType()], ids=str)
def test_a_promoted_date_beyond_the_range_is_unknown_and_never_another_day(kind):
    day = value_to_bytes(DateType(), 2**31 - 1)
    with pytest.raises(InvalidArgument, match="range"):
        value_from_bytes(kind, day)
    assert from_bytes_array(kind, pa.array([day, value_to_bytes(DateType(), -1)])).is_valid().to_pylist() == [
        False,
        True,
    ]


@pytest.mark.spec("SVS-18")
@given(st.integers(-(2**31), 2**31 - 1), st.floats(width=32, allow_nan=False))
def test_every_int_and_float_can_be_read_as_promoted(number, fraction):
    assert value_from_bytes(LongType(), value_to_bytes(IntegerType(), number)) == number
    assert value_from_bytes(DoubleType(), value_to_bytes(FloatType(), fraction)) == fraction
    assert from_bytes_array(LongType(), pa.array([struct.pack("<i", number)])).to_pylist() == [number]
    assert from_bytes_array(DoubleType(), pa.array([struct.pack("<f", fraction)])).to_pylist() == [fraction]


WIDTHS = {
    "boolean": {1}, "int": {4}, "long": {4, 8}, "float": {4}, "double": {4, 8}, "date": {4}, "time": {8},
    "timestamp": {4, 8}, "timestamptz": {8}, "timestamp_ns": {4, 8}, "timestamptz_ns": {8}, "uuid": {16},
    "decimal(38,0)": set(range(1, 17)),
}  # fmt: skip


@pytest.mark.spec("SVS-19")
@pytest.mark.parametrize(
    ("kind", "length"),
    [
        (kind, n)
        for kind, widths in WIDTHS.items()
        for n in (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 40)
        if n not in widths
    ],
)
def test_bytes_of_a_wrong_length_are_an_unknown_bound(kind, length):
    with pytest.raises(InvalidArgument):
        value_from_bytes(parse_type(kind), b"\1" * length)
    sound = b"\1".ljust(max(WIDTHS[kind]), b"\0")
    decoded = from_bytes_array(parse_type(kind), pa.array([b"\1" * length, sound, b"\1" * length]))
    assert decoded.is_valid().to_pylist() == [False, True, False]


@pytest.mark.spec("SVS-13", "SVS-19")
def test_a_fixed_that_was_truncated_stays_a_bound_and_a_longer_one_is_unknown():
    decoded = from_bytes_array(FixedType(4), pa.array([b"ab", b"abcd", b"abcde", b"", None]))
    assert decoded.to_pylist() == [b"ab\0\0", b"abcd", None, None, None]
    with pytest.raises(InvalidArgument):
        value_from_bytes(FixedType(4), b"ab")


def test_a_fixed_that_claims_gigabytes_allocates_none():
    with pytest.raises(InvalidArgument, match="memory"):
        from_bytes_array(FixedType(2**31 - 1), pa.array([b"a", b"b"]))


@pytest.mark.spec("SVS-11", "SVS-19")
def test_string_that_is_not_utf8_is_unknown_and_spoils_no_other():
    data = pa.array([b"\xff", "über".encode(), None, b"\xed\xa0\x80", b""])
    for form in (data, data.cast(pa.large_binary())):
        assert from_bytes_array(StringType(), form).to_pylist() == [None, "über", None, None, ""]
    with pytest.raises(InvalidArgument, match="UTF-8"):
        value_from_bytes(StringType(), b"\xff")


@pytest.mark.spec("SVS-07", "SVS-19", "TYP-09")
def test_a_time_beyond_midnight_is_unknown():
    ends = [-1, 0, 86_399_999_999, 86_400_000_000]
    decoded = from_bytes_array(TimeType(), pa.array([struct.pack("<q", end) for end in ends]))
    assert decoded.is_valid().to_pylist() == [False, True, True, False]
    with pytest.raises(InvalidArgument, match="midnight"):
        value_from_bytes(TimeType(), struct.pack("<q", ends[-1]))


@pytest.mark.spec("SVS-15", "TYP-07", "SVS-19")
@given(decimals(), st.binary(min_size=1, max_size=16))
def test_decimals_of_any_length_decode_exactly_or_not_at_all(kind, data):
    number = int.from_bytes(data, "big", signed=True)
    (decoded,) = from_bytes_array(kind, pa.array([data])).to_pylist()
    if abs(number) < 10**kind.precision:
        assert unscaled(decoded, kind.scale) == number
        assert same(decoded, value_from_bytes(kind, data))
    else:
        assert decoded is None
        with pytest.raises(InvalidArgument):
            value_from_bytes(kind, data)


@pytest.mark.spec("SVS-15", "TYP-07", "SVS-19")
@pytest.mark.parametrize("precision", range(1, 39))
def test_the_greatest_decimals_decode_and_those_one_beyond_do_not(precision):
    top = 10**precision - 1
    numbers = [top, -top, top + 1, -top - 1, 0]
    data = [number.to_bytes(16, "big", signed=True) for number in numbers]
    decoded = from_bytes_array(DecimalType(precision, 0), pa.array(data)).to_pylist()
    assert decoded == [top, -top, None, None, 0]


@pytest.mark.spec("SVS-15")
@given(st.integers(-(10**38) + 1, 10**38 - 1))
def test_a_decimal_takes_the_fewest_bytes(number):
    kind = DecimalType(38, 0)
    data = value_to_bytes(kind, Decimal(number))
    shorter = [n for n in range(1, len(data)) if -(1 << (8 * n - 1)) <= number < 1 << (8 * n - 1)]
    assert int.from_bytes(data, "big", signed=True) == number
    assert shorter == []
    assert to_bytes_array(kind, pa.array([Decimal(number)], pa.decimal128(38, 0))).to_pylist() == [data]


@pytest.mark.spec("SVS-05", "TYP-05", "TYP-06")
@given(st.binary(min_size=8, max_size=8), st.binary(min_size=4, max_size=4))
def test_floats_keep_every_bit_in_columns(eight, four):
    assert to_bytes_array(DoubleType(), from_bytes_array(DoubleType(), pa.array([eight]))).to_pylist() == [eight]
    assert to_bytes_array(FloatType(), from_bytes_array(FloatType(), pa.array([four]))).to_pylist() == [four]


@pytest.mark.spec("SVS-03", "SVS-04", "TYP-03", "TYP-04")
@pytest.mark.parametrize(("kind", "beyond"), [(IntegerType(), 2**31), (LongType(), 2**63), (DateType(), -(2**31) - 1)])
def test_numbers_out_of_range_have_no_bytes(kind, beyond):
    with pytest.raises(InvalidArgument):
        value_to_bytes(kind, beyond)


@pytest.mark.parametrize(
    ("kind", "internal"),
    [
        (IntegerType(), None), (IntegerType(), "1"), (StringType(), b"x"), (StringType(), "\ud800"),
        (BinaryType(), "x"), (UUIDType(), b"x"), (FixedType(4), b"x"), (DecimalType(9, 2), Decimal("1.234")),
        (DecimalType(9, 2), 1.5), (DecimalType(9, 2), Decimal("NaN")), (FloatType(), 1e300),
    ],
)  # fmt: skip
def test_what_is_no_value_of_the_type_has_no_bytes(kind, internal):
    with pytest.raises(InvalidArgument):
        value_to_bytes(kind, internal)


UNSUPPORTED = {
    "unknown": UnknownType(),
    "variant": VariantType(),
    "struct": StructType(NestedField(1, "a", "int")),
    "list": ListType(1, "int"),
    "map": MapType(1, "int", 2, "int"),
}


@pytest.mark.spec("SVS-16", "SVS-17")
@pytest.mark.parametrize("name", VECTORS["single_value_binary_unsupported"])
def test_some_types_have_no_binary_form(name):
    kind = UNSUPPORTED[name]
    with pytest.raises(InvalidArgument):
        value_to_bytes(kind, (1,))
    with pytest.raises(InvalidArgument):
        value_from_bytes(kind, b"\1")
    with pytest.raises(InvalidArgument):
        to_bytes_array(kind, pa.nulls(1))


@pytest.mark.spec("SVS-16", "SVS-17")
@pytest.mark.parametrize("name", ["struct", "list", "map", "variant"])
def test_columns_of_types_without_a_binary_form_are_refused(name):
    with pytest.raises(InvalidArgument):
        from_bytes_array(UNSUPPORTED[name], pa.array([b"\1"]))


def test_the_bounds_of_an_unknown_column_are_unknown():
    assert from_bytes_array(UnknownType(), pa.array([b"\1", None])).equals(pa.nulls(2))


@pytest.mark.spec("SVS-20")
@pytest.mark.parametrize("case", VECTORS["bound_binary_geo"], ids=lambda case: str(case["point"]))
def test_the_bound_of_a_geometry_is_a_point(case):
    point, data = GeoPoint(**case["point"]), bytes.fromhex(case["hex"])
    assert geo_point_to_bytes(point) == data
    assert geo_point_from_bytes(data) == point
    assert value_from_bytes(parse_type(case["type"]), data) == data
    assert from_bytes_array(parse_type(case["type"]), pa.array([data])).to_pylist() == [data]


@pytest.mark.spec("SVS-20")
@given(st.binary(min_size=8, max_size=8))
def test_any_nan_for_z_is_unset(bits):
    z = struct.unpack("<d", bits)[0]
    point = geo_point_from_bytes(struct.pack("<2d", 1, 2) + bits + struct.pack("<d", 4))
    assert point == GeoPoint(1, 2, None if z != z else z, 4)


@pytest.mark.parametrize("length", [0, 8, 15, 20, 40])
def test_bytes_that_are_no_point_are_refused(length):
    with pytest.raises(InvalidArgument):
        geo_point_from_bytes(b"\0" * length)
    with pytest.raises(InvalidArgument):
        geo_point_from_bytes(struct.pack("<2d", float("nan"), 1))


@pytest.mark.spec("SVS-22")
def test_the_single_value_of_a_geometry_is_its_well_known_binary():
    point = to_internal(GeometryType(), "POINT (30 10)")
    assert value_to_bytes(GeometryType(), point) == point == bytes.fromhex("01010000000000000000003e400000000000002440")
    assert to_bytes_array(GeometryType(), pa.array([point])).to_pylist() == [point]


def test_columns_may_come_in_chunks_slices_and_other_forms():
    chunks = pa.chunked_array([[b"\1\0\0\0"], [b"\2\0\0\0", None]])
    assert from_bytes_array(IntegerType(), chunks).to_pylist() == [1, 2, None]
    assert from_bytes_array(IntegerType(), pa.array([b"\1\0\0\0"], pa.binary(4))).to_pylist() == [1]
    assert from_bytes_array(IntegerType(), pa.array([], pa.binary())).to_pylist() == []
    assert from_bytes_array(IntegerType(), pa.nulls(2, pa.binary())).to_pylist() == [None, None]
    assert to_bytes_array(LongType(), pa.chunked_array([[1], [None]])).to_pylist() == [
        value_to_bytes(LongType(), 1),
        None,
    ]
    assert to_bytes_array(StringType(), pa.array(["a", "a"]).dictionary_encode()).to_pylist() == [b"a", b"a"]
    assert to_bytes_array(LongType(), pa.array([], pa.int64())).to_pylist() == []
    assert to_bytes_array(DecimalType(9, 2), pa.array([], pa.decimal128(9, 2))).to_pylist() == []
    assert to_bytes_array(BooleanType(), pa.array([True, None, False])).to_pylist() == [b"\1", None, b"\0"]
    with pytest.raises(InvalidArgument):
        from_bytes_array(IntegerType(), pa.array([1.5]))
    with pytest.raises(InvalidArgument):
        to_bytes_array(IntegerType(), pa.array([2**40]))


@given(st.lists(st.none() | INT64, min_size=1, max_size=20), st.integers(0, 5))
def test_values_that_lie_apart_in_their_buffer_are_gathered(numbers, gap):
    """Bounds are often slices of something bigger, so values need not follow one another."""
    encoded = [None if number is None else struct.pack("<q", number) for number in numbers]
    padded = pa.array([one for number in encoded for one in [number, *[b"?"] * gap]], pa.binary())
    picked = from_bytes_array(LongType(), padded).take(pa.array(np.arange(len(numbers)) * (gap + 1)))
    assert picked.to_pylist() == numbers

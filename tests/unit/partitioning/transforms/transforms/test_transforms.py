"""Every transform, on values and on arrays."""

from __future__ import annotations

import pickle
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.partitioning.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
    parse_transform,
)
from icefield.partitioning.transforms.murmur3 import hash_value
from icefield.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
    parse_type,
)
from icefield.types.values import from_arrow_array, to_arrow_array, to_internal
from vectors import VECTORS

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)

PRIMITIVES: dict[IcebergType, st.SearchStrategy[Any]] = {
    BooleanType(): st.booleans(),
    IntegerType(): INT32,
    LongType(): INT64,
    FloatType(): st.floats(width=32, allow_nan=False),
    DoubleType(): st.floats(allow_nan=False),
    DecimalType(9, 2): st.decimals(-(10**6), 10**6, places=2),
    DecimalType(38, 10): st.integers(-(10**37), 10**37).map(lambda n: Decimal(f"{n}E-10")),
    DateType(): INT32,
    TimeType(): st.integers(0, 86_400_000_000 - 1),
    TimestampType(): INT64,
    TimestamptzType(): INT64,
    TimestampNanoType(): INT64,
    TimestamptzNanoType(): INT64,
    StringType(): st.text(max_size=12),
    UUIDType(): st.binary(min_size=16, max_size=16),
    FixedType(5): st.binary(min_size=5, max_size=5),
    BinaryType(): st.binary(max_size=12),
}
OTHERS = [UnknownType(), GeometryType(), GeographyType(), VariantType(), StructType(), ListType(1, IntegerType())]
KNOWN: list[Transform] = [
    IdentityTransform(),
    BucketTransform(16),
    TruncateTransform(10),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
    VoidTransform(),
]


def vector_type(text: str) -> IcebergType:
    if text == "list<int>":
        return ListType(1, IntegerType())
    if text in ("struct", "variant"):
        return {"struct": StructType(), "variant": VariantType()}[text]
    return parse_type(text.replace("fixed(", "fixed[").replace(")", "]") if text.startswith("fixed(") else text)


def internal(kind: IcebergType, value: Any, given_internal: Any = None) -> Any:
    if given_internal is not None or value is None:
        return given_internal
    if isinstance(kind, BinaryType | FixedType):
        return bytes.fromhex(value)
    return tuple(value) if isinstance(kind, ListType) else to_internal(kind, value)


def named(vector: dict[str, Any]) -> str:
    return f"{vector['transform']} {vector['source_type']} {vector['value'] or vector.get('internal')}"


@pytest.mark.spec(
    *("TRN-01", "TRN-03", "TRN-06", "TRN-10", "TRN-11", "TRN-12", "TRN-13", "TRN-14", "TRN-16", "TRN-17", "TRN-18"),
    *("TRN-19", "TRN-20", "TRN-21", "TRN-22"),
)
@pytest.mark.parametrize("vector", VECTORS["transforms"], ids=named)
def test_every_vector_is_transformed_as_printed(vector: dict[str, Any]) -> None:
    kind = vector_type(vector["source_type"])
    transform = parse_transform(vector["transform"])
    value = internal(kind, vector["value"], vector.get("internal"))
    result = transform.result_type(kind)
    expected = internal(result, vector["result"])
    assert transform.apply_value(value, kind) == expected
    array = to_arrow_array(kind, [value, None, value])
    assert from_arrow_array(result, transform.apply(array, kind)) == [expected, None, expected]


def cases() -> st.SearchStrategy[tuple[Transform, IcebergType, list[Any]]]:
    """A transform, a type it applies to, and values of it."""
    transforms = st.one_of(
        st.sampled_from(KNOWN),
        st.integers(1, 2**31 - 1).map(BucketTransform),
        (st.integers(1, 50) | st.integers(1, 2**31 - 1)).map(TruncateTransform),
    )
    pairs = st.tuples(transforms, st.sampled_from(list(PRIMITIVES))).filter(lambda pair: pair[0].can_transform(pair[1]))
    return pairs.flatmap(
        lambda pair: st.tuples(*map(st.just, pair), st.lists(st.none() | PRIMITIVES[pair[1]], max_size=12))
    )


@pytest.mark.spec("TRN-01", "TRN-02")
@given(cases(), st.integers(0, 3))
def test_a_column_is_transformed_as_its_values_are(case: tuple[Transform, IcebergType, list[Any]], start: int) -> None:
    transform, kind, values = case
    array = to_arrow_array(kind, values).slice(start)
    result = transform.apply(array, kind)
    expected = [transform.apply_value(value, kind) for value in values[start:]]
    kind_of_result = transform.result_type(kind)
    assert result.type == to_arrow_array(kind_of_result, []).type
    assert from_arrow_array(kind_of_result, result) == expected
    assert all((value is None) <= (out is None) for value, out in zip(values[start:], expected, strict=True))
    chunked = transform.apply(pa.chunked_array([array, array.slice(1)]), kind)
    assert from_arrow_array(kind_of_result, chunked) == expected + expected[1:]
    if not pa.types.is_decimal(array.type):
        encoded = array.dictionary_encode()
        assert from_arrow_array(kind_of_result, transform.apply(encoded, kind)) == expected


@pytest.mark.spec("TRN-02")
@pytest.mark.parametrize("transform", KNOWN, ids=str)
def test_null_gives_null(transform: Transform) -> None:
    for kind in filter(transform.can_transform, PRIMITIVES):
        assert transform.apply_value(None, kind) is None
        nulls = transform.apply(pa.nulls(4, to_arrow_array(kind, []).type), kind)
        assert (len(nulls), nulls.null_count) == (4, 4)


@pytest.mark.spec("TRN-27")
@given(cases().filter(lambda case: case[0].preserves_order))
def test_a_transform_that_says_so_preserves_order(case: tuple[Transform, IcebergType, list[Any]]) -> None:
    transform, kind, values = case
    if isinstance(transform, TruncateTransform) and isinstance(kind, IntegerType | LongType):
        lowest = -(2**31) if isinstance(kind, IntegerType) else -(2**63)
        values = [value for value in values if value is not None and value >= lowest + transform.width]
    if isinstance(transform, HourTransform):
        values = [value for value in values if value is not None and abs(value) < 2**61]
    kept = sorted(value for value in values if value is not None)
    images = [transform.apply_value(value, kind) for value in kept]
    assert images == sorted(images)


@pytest.mark.spec("TRN-27")
def test_bucket_and_void_do_not_preserve_order() -> None:
    assert {str(transform) for transform in KNOWN if not transform.preserves_order} == {"bucket[16]", "void"}


ALLOWED = VECTORS["transform_types"]["allowed_sources"]


@pytest.mark.spec("TRN-04", "TRN-05", "TRN-09", "TRN-14", "TRN-19", "TRN-20", "TRN-21")
@pytest.mark.parametrize("transform", KNOWN, ids=str)
def test_each_transform_takes_the_types_of_the_table_and_no_other(transform: Transform) -> None:
    allowed = ALLOWED[str(transform).partition("[")[0]]
    for kind in [*PRIMITIVES, *OTHERS]:
        if isinstance(transform, IdentityTransform):
            expected = kind.is_primitive and not isinstance(kind, GeometryType | GeographyType)
        else:
            expected = allowed == "any" or str(kind).partition("(")[0].partition("[")[0] in allowed
        assert transform.can_transform(kind) is expected, kind
        if not expected:
            with pytest.raises(InvalidArgument, match="does not apply"):
                transform.apply_value(None, kind)
            with pytest.raises(InvalidArgument, match="does not apply"):
                transform.apply(pa.array([], pa.int32()), kind)


@pytest.mark.spec("TRN-04", "TRN-05", "TRN-07", "TRN-15", "TRN-19")
@pytest.mark.parametrize(("text", "source"), VECTORS["transform_types"]["rejected"])
def test_what_the_table_rejects_is_rejected(text: str, source: str) -> None:
    with pytest.raises(InvalidArgument):
        parse_transform(text).check_source(vector_type(source))


@pytest.mark.spec("TRN-03", "TRN-09", "TRN-16", "TRN-17", "TRN-21", "TRN-23", "TRN-24")
def test_result_types_are_those_of_the_table() -> None:
    for kind in PRIMITIVES:
        assert IdentityTransform().result_type(kind) == VoidTransform().result_type(kind) == kind
        assert TruncateTransform(3).result_type(kind) == kind
        for transform in (BucketTransform(4), YearTransform(), MonthTransform(), HourTransform()):
            assert transform.result_type(kind) == IntegerType()
        # The old specification says int, and the new one date: both are the same number of days.
        assert DayTransform().result_type(kind) == DateType()
    assert VoidTransform().result_type(StructType()) == IntegerType()
    assert VoidTransform().apply(pa.array([{}, {}], pa.struct([])), StructType()).equals(pa.nulls(2, pa.int32()))


@pytest.mark.spec("TRN-23", "TRN-24")
def test_a_day_is_a_count_of_days_and_shows_as_a_date() -> None:
    day = DayTransform()
    result = day.apply(pa.array([-1, 1510871468000000], pa.timestamp("us")), TimestampType())
    assert result.type == pa.date32()
    assert result.view(pa.int32()).to_pylist() == [-1, 17486]
    # An old manifest has the same days as plain ints, and they have the same string.
    assert day.to_display(IntegerType(), 17486) == day.to_display(DateType(), 17486) == "2017-11-16"


@pytest.mark.spec("TRN-06")
def test_the_sign_bit_of_a_hash_is_cleared_and_not_its_sign() -> None:
    negative = next(n for n in range(1000) if (hash_value(LongType(), n) or 0) < 0)
    hashed = hash_value(LongType(), negative)
    assert hashed is not None
    bucket = BucketTransform(100).apply_value(negative, LongType())
    assert bucket == (hashed + 2**32 & 0x7FFFFFFF) % 100 != abs(hashed) % 100


@pytest.mark.spec("TRN-06")
@given(st.lists(INT64, min_size=1), st.integers(1, 2**31 - 1))
def test_buckets_are_between_zero_and_their_number(values: list[int], count: int) -> None:
    buckets = BucketTransform(count).apply(pa.array(values, pa.int64()), LongType()).to_pylist()
    assert all(0 <= bucket < count for bucket in buckets)


@pytest.mark.spec("TRN-08")
@given(st.lists(INT32))
def test_an_int_and_the_long_it_is_promoted_to_share_a_bucket(values: list[int]) -> None:
    narrow = BucketTransform(37).apply(pa.array(values, pa.int32()), IntegerType())
    assert narrow.equals(BucketTransform(37).apply(pa.array(values, pa.int64()), LongType()))


@pytest.mark.spec("TRN-07", "TRN-15")
@pytest.mark.parametrize("make", [BucketTransform, TruncateTransform])
@pytest.mark.parametrize("parameter", [0, -1, 2**31, True, 1.0, "4", None])
def test_a_parameter_below_one_or_above_an_int_is_refused(make: Any, parameter: Any) -> None:
    with pytest.raises(InvalidArgument, match="from 1 to"):
        make(parameter)


@pytest.mark.spec("TRN-10")
@given(st.lists(st.integers(-(2**30), 2**30), min_size=1), st.integers(1, 2**30))
def test_numbers_are_truncated_to_the_multiple_below(values: list[int], width: int) -> None:
    for kind, form in ((IntegerType(), pa.int32()), (LongType(), pa.int64())):
        for value, result in zip(
            values, TruncateTransform(width).apply(pa.array(values, form), kind).to_pylist(), strict=True
        ):
            assert result % width == 0
            assert 0 <= value - result < width


@pytest.mark.spec("TRN-11")
def test_near_the_minimum_truncation_wraps_around() -> None:
    assert TruncateTransform(10).apply_value(-(2**31), IntegerType()) == 2147483646
    assert TruncateTransform(10).apply(pa.array([-(2**31)], pa.int32()), IntegerType()).to_pylist() == [2147483646]
    assert TruncateTransform(10).apply_value(-(2**63), LongType()) == 2**63 - 2
    assert TruncateTransform(10).apply(pa.array([-(2**63)]), LongType()).to_pylist() == [2**63 - 2]


@pytest.mark.spec("TRN-12")
@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1), min_size=1), st.integers(1, 2**31 - 1), st.integers(0, 38))
def test_decimals_are_truncated_in_units_of_their_last_digit(numbers: list[int], width: int, scale: int) -> None:
    numbers = [number for number in numbers if abs(number) + width < 10**38]
    kind = DecimalType(38, scale)
    values = [Decimal(f"{number}E-{scale}") for number in numbers]
    expected = [Decimal(f"{number // width * width}E-{scale}") for number in numbers]
    result = TruncateTransform(width).apply(to_arrow_array(kind, values), kind)
    assert result.to_pylist() == [TruncateTransform(width).apply_value(value, kind) for value in values] == expected


@pytest.mark.spec("TRN-12")
def test_a_truncated_decimal_may_have_a_digit_more_than_its_type() -> None:
    kind = DecimalType(3, 1)
    below = TruncateTransform(1000).apply_value(Decimal("-99.9"), kind)
    assert below == Decimal("-100.0")
    assert TruncateTransform(1000).apply(pa.array([Decimal("-99.9")]), kind).to_pylist() == [below]


@pytest.mark.spec("TRN-13")
@given(st.lists(st.text(max_size=20)), st.integers(1, 8))
def test_string_is_truncated_to_code_points(values: list[str], width: int) -> None:
    for form in (pa.string(), pa.large_string(), pa.string_view()):
        result = TruncateTransform(width).apply(pa.array(values, form), StringType())
        assert result.to_pylist() == [value[:width] for value in values]


@pytest.mark.spec("TRN-14")
@given(st.lists(st.binary(max_size=20)), st.integers(1, 8))
def test_bytes_are_truncated_where_they_stand(values: list[bytes], width: int) -> None:
    result = TruncateTransform(width).apply(pa.array(values, pa.binary()), BinaryType())
    assert result.to_pylist() == [value[:width] for value in values]


EPOCH = datetime(1970, 1, 1)
moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))


@pytest.mark.spec("TRN-16", "TRN-17", "TRN-18", "TRN-19", "TRN-20")
@given(st.lists(moments, min_size=1, max_size=20))
def test_times_are_counted_as_the_calendar_counts_them(values: list[datetime]) -> None:
    micros = [(value - EPOCH) // timedelta(microseconds=1) for value in values]
    expected = {
        "year": [value.year - 1970 for value in values],
        "month": [(value.year - 1970) * 12 + value.month - 1 for value in values],
        "day": [(value.date() - EPOCH.date()).days for value in values],
        "hour": [(value - EPOCH) // timedelta(hours=1) for value in values],
    }
    for name, counts in expected.items():
        transform = parse_transform(name)
        for kind in (TimestampType(), TimestamptzType()):
            column = transform.apply(to_arrow_array(kind, micros), kind)
            assert from_arrow_array(transform.result_type(kind), column) == counts
        if name != "hour":
            column = transform.apply(to_arrow_array(DateType(), expected["day"]), DateType())
            assert from_arrow_array(transform.result_type(DateType()), column) == counts
        within = [(m, count) for m, count in zip(micros, counts, strict=True) if abs(m) < 2**63 // 1000]
        for kind in (TimestampNanoType(), TimestamptzNanoType()):
            column = transform.apply(to_arrow_array(kind, [m * 1000 + 999 for m, _ in within]), kind)
            assert from_arrow_array(transform.result_type(kind), column) == [count for _, count in within]


@pytest.mark.spec("TRN-16", "TRN-17", "TRN-18", "TRN-19")
def test_the_ends_of_time_are_counted_right() -> None:
    for value in (-(2**31), -(2**31) + 1, -12_000_000, 12_000_000, 2**31 - 1):
        day = np.datetime64(value, "D")
        for name, unit in (("year", "Y"), ("month", "M")):
            expected = int(day.astype(f"datetime64[{unit}]").astype(np.int64))
            assert parse_transform(name).apply_value(value, DateType()) == expected
            column = pa.array([value, None], pa.int32()).view(pa.date32())
            assert parse_transform(name).apply(column, DateType()).to_pylist() == [expected, None]
    last = 2**63 - 1
    # Hours after the year 246953 do not fit into an int; the reference implementation wraps around.
    wrapped = (last // 3_600_000_000 + 2**31) % 2**32 - 2**31
    assert HourTransform().apply_value(last, TimestampType()) == wrapped
    assert HourTransform().apply(pa.array([last], pa.timestamp("us")), TimestampType()).to_pylist() == [wrapped]


@pytest.mark.spec("TRN-22")
@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Kolkata", "Pacific/Kiritimati"])
def test_neither_the_session_zone_nor_the_column_s_zone_moves_an_instant(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        instant = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
        column = pa.array([instant], pa.timestamp("us", zone))
        for name in ("year", "month", "day", "hour"):
            transform = parse_transform(name)
            result = transform.apply(column, TimestamptzType())
            assert from_arrow_array(transform.result_type(TimestamptzType()), result) == [-1]
            assert transform.apply_value(to_internal(TimestamptzType(), instant), TimestamptzType()) == -1
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.spec("TRN-25", "TRN-26", "TRN-28")
@pytest.mark.parametrize("text", VECTORS["partition_spec_json"]["transform_strings"])
def test_the_strings_of_the_spec_are_parsed_and_printed(text: str) -> None:
    transform = parse_transform(text)
    assert transform.is_known
    assert str(transform) == text
    assert parse_transform(transform) is transform
    assert parse_transform(text.upper()) == transform


@pytest.mark.spec("TRN-26")
@pytest.mark.parametrize(
    "text",
    [*VECTORS["partition_spec_json"]["unknown_transform_roundtrip"], "", "Bucket [4]", "bucket[-1]", "bucket[٣]"],
)
def test_any_other_string_is_kept_as_an_unknown_transform(text: str) -> None:
    transform = parse_transform(text)
    assert transform == UnknownTransform(text)
    assert str(transform) == text
    assert not transform.is_known
    assert not transform.preserves_order
    assert transform.can_transform(StructType())
    assert transform.result_type(LongType()) == StringType()
    assert transform.apply_value(None, LongType()) is None
    with pytest.raises(UnsupportedFeature, match="not known"):
        transform.apply_value(1, LongType())
    with pytest.raises(UnsupportedFeature, match="not known"):
        transform.apply(pa.array([1]), LongType())


@pytest.mark.spec("TRN-28")
def test_a_parameter_is_a_plain_decimal_integer() -> None:
    assert str(BucketTransform(16)) == "bucket[16]"
    assert str(TruncateTransform(7)) == "truncate[7]"
    assert parse_transform("bucket[ 16 ]") == UnknownTransform("bucket[ 16 ]")
    assert parse_transform("bucket[1_6]") == UnknownTransform("bucket[1_6]")
    for text in ("bucket[0]", "truncate[0]", "bucket[2147483648]", "truncate[" + "9" * 10_000 + "]"):
        with pytest.raises(InvalidArgument, match="from 1 to"):
            parse_transform(text)


@pytest.mark.parametrize("given_", [None, 3, ["day"]])
def test_what_is_neither_string_nor_transform_is_refused(given_: Any) -> None:
    with pytest.raises(InvalidArgument, match="as a string"):
        parse_transform(given_)
    with pytest.raises(InvalidArgument, match="as a string"):
        UnknownTransform(given_)


def test_transforms_are_values() -> None:
    for transform in [*KNOWN, UnknownTransform("zorder")]:
        again = pickle.loads(pickle.dumps(transform))
        assert again == transform
        assert hash(again) == hash(transform)
    with pytest.raises(AttributeError):
        TruncateTransform(10).width = 3  # type: ignore[misc]
    assert len({str(transform) for transform in KNOWN}) == len(set(KNOWN)) == len(KNOWN)


def test_an_array_of_the_wrong_kind_is_refused_or_converted_but_never_misread() -> None:
    assert YearTransform().apply(pa.array([0], pa.timestamp("s")), TimestampType()).to_pylist() == [0]
    assert HourTransform().apply(pa.array([7200], pa.timestamp("s")), TimestampType()).to_pylist() == [2]
    assert TruncateTransform(10).apply(pa.array([17], pa.int8()), IntegerType()).to_pylist() == [10]
    with pytest.raises(InvalidArgument, match="does not hold"):
        DayTransform().apply(pa.array([b"x"]), TimestampType())


def test_extension_arrays_are_read_by_their_storage() -> None:
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(range(16)), None], pa.binary(16)))
    plain = pa.array([bytes(range(16)), None], pa.binary(16))
    assert BucketTransform(8).apply(uuids, UUIDType()).equals(BucketTransform(8).apply(plain, UUIDType()))
    assert IdentityTransform().apply(uuids, UUIDType()).equals(plain)

import math
import re
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from format_strategies import same, types, values
from hypothesis import assume, given
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
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
    shown,
)
from icefield.types.values import initial_value, promote, to_internal, write_value
from python_values import to_python
from vectors import VECTORS

PST = timezone(timedelta(hours=-8))
POINT = StructType(NestedField(1, "x", "int"), NestedField(2, "y", "int"))


@pytest.mark.parametrize(
    ("kind", "given_value", "internal"),
    [
        (BooleanType(), True, True), (BooleanType(), "FALSE", False), (BooleanType(), np.bool_(True), True),
        (IntegerType(), 34, 34), (IntegerType(), "34", 34), (IntegerType(), np.int64(34), 34),
        (IntegerType(), 34.0, 34), (IntegerType(), Decimal("34.00"), 34), (LongType(), -(2**63), -(2**63)),
        (FloatType(), 0.1, float(np.float32(0.1))), (DoubleType(), "0.1", 0.1), (DoubleType(), 1, 1.0),
        (DoubleType(), float("inf"), float("inf")), (FloatType(), np.float32(0.1), float(np.float32(0.1))),
        (DecimalType(9, 2), "14.2", Decimal("14.20")), (DecimalType(9, 2), 14, Decimal("14.00")),
        (DecimalType(9, 2), 14.2, Decimal("14.20")), (DecimalType(9, 2), Decimal("1E+1"), Decimal("10.00")),
        (DateType(), date(2017, 11, 16), 17486), (DateType(), "2017-11-16", 17486), (DateType(), 17486, 17486),
        (DateType(), datetime(2017, 11, 16), 17486), (DateType(), np.datetime64("2017-11-16"), 17486),
        (TimeType(), time(22, 31, 8, 1), 81068000001), (TimeType(), "22:31:08", 81068000000), (TimeType(), 5, 5),
        (TimestampType(), datetime(1970, 1, 1, 0, 0, 0, 7), 7), (TimestampType(), "1970-01-01 00:00:01", 1000000),
        (TimestampType(), date(1970, 1, 2), 86_400_000_000), (TimestampType(), "1970-01-02", 86_400_000_000),
        (TimestampType(), np.datetime64(7, "us"), 7), (TimestampType(), pd.Timestamp(7000), 7),
        (TimestamptzType(), datetime(1970, 1, 1, tzinfo=PST), 28_800_000_000),
        (TimestamptzType(), "1970-01-01T00:00:00-08:00", 28_800_000_000), (TimestamptzType(), date(1970, 1, 1), 0),
        (TimestampNanoType(), datetime(1970, 1, 1, 0, 0, 0, 7), 7000), (TimestampNanoType(), pd.Timestamp(7), 7),
        (TimestampNanoType(), np.datetime64(7, "ns"), 7), (TimestampNanoType(), date(1970, 1, 2), 86_400 * 10**9),
        (TimestamptzNanoType(), pd.Timestamp(7, tz="UTC"), 7),
        (StringType(), "über", "über"), (StringType(), np.str_("a"), "a"),
        (UUIDType(), uuid.UUID(int=5), uuid.UUID(int=5).bytes), (UUIDType(), str(uuid.UUID(int=5)), bytes(15) + b"\5"),
        (UUIDType(), bytes(16), bytes(16)), (FixedType(2), bytearray(b"ab"), b"ab"), (BinaryType(), b"", b""),
        (BinaryType(), memoryview(b"ab"), b"ab"), (GeometryType(), b"\1\2", b"\1\2"),
        (VariantType(), {"metadata": b"m", "value": b"v"}, (b"m", b"v")), (VariantType(), (b"m", b"v"), (b"m", b"v")),
        (POINT, {"x": 1, "y": "2"}, (1, 2)), (POINT, {"y": 2}, (None, 2)), (POINT, (1, None), (1, None)),
        (ListType(1, "int"), [1, None], (1, None)), (ListType(1, "int"), np.array([1, 2]), (1, 2)),
        (MapType(1, "string", 2, "int"), {"a": 1}, (("a", 1),)),
        (MapType(1, "string", 2, "int"), [("a", None)], (("a", None),)),
        (IntegerType(), None, None), (TimestampType(), pd.NaT, None), (DateType(), np.datetime64("NaT"), None),
        (LongType(), pa.scalar(5, pa.int32()), 5), (DateType(), pa.scalar(date(1970, 1, 2)), 1),
        (StringType(), pa.scalar(None, pa.string()), None), (UnknownType(), None, None),
    ],
    ids=lambda part: re.sub(" at 0x[0-9a-f]+", "", repr(part)),
)  # fmt: skip
def test_what_a_user_writes_becomes_an_internal_value(kind, given_value, internal):
    assert same(to_internal(kind, given_value), internal)


@pytest.mark.spec("TYP-03", "TYP-04", "TYP-07", "TYP-14", "TYP-12", "TYP-18", "TYP-21", "TYP-22")
@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (BooleanType(), 1), (BooleanType(), "yes"), (IntegerType(), True), (IntegerType(), 2**31),
        (IntegerType(), 1.5), (IntegerType(), "1.0"), (IntegerType(), "x"), (IntegerType(), b"1"), (LongType(), 2**63),
        (IntegerType(), math.nan), (IntegerType(), math.inf), (IntegerType(), date(2017, 1, 1)),
        (FloatType(), 1e300), (FloatType(), "x"), (DoubleType(), True), (DoubleType(), Decimal("1e999")),
        (DoubleType(), 10**400), (DecimalType(9, 2), "1.234"), (DecimalType(9, 2), "12345678"),
        (DecimalType(9, 2), "NaN"), (DecimalType(9, 2), Decimal("Infinity")), (DecimalType(9, 2), True),
        (DecimalType(9, 2), "1e999999999"), (DecimalType(9, 2), "1e-999999999"), (DecimalType(38, 0), 10**38),
        (DateType(), datetime(2017, 1, 1, 1)), (DateType(), "2017-02-30"), (DateType(), True), (DateType(), 2**31),
        (DateType(), np.datetime64(1, "h")), (TimeType(), 86_400_000_000), (TimeType(), -1),
        (TimeType(), time(1, tzinfo=UTC)), (TimestampType(), datetime(2017, 1, 1, tzinfo=UTC)),
        (TimestampType(), "2017-11-16T00:00:00Z"), (TimestampType(), pd.Timestamp(7)),
        (TimestamptzType(), datetime(2017, 1, 1)), (TimestamptzType(), "2017-11-16T00:00:00"),
        (TimestampNanoType(), datetime(1600, 1, 1)), (TimestampNanoType(), date(2300, 1, 1)),
        (TimestampNanoType(), "2262-04-11T23:47:16.854775808"), (TimestampType(), 2**63),
        (StringType(), 1), (StringType(), b"x"), (StringType(), "\ud800"), (UUIDType(), b"x"), (UUIDType(), "x"),
        (FixedType(4), b"abc"), (FixedType(4), b"abcde"), (BinaryType(), "ab"), (BinaryType(), 5),
        (GeometryType(), 1), (VariantType(), (b"m",)), (VariantType(), 5), (UnknownType(), 1),
        (POINT, {"z": 1}), (POINT, (1,)), (POINT, "ab"), (POINT, 5), (ListType(1, "int"), 5),
        (ListType(1, "int"), "ab"),
        (ListType(1, "int", element_required=True), [None]), (MapType(1, "string", 2, "int"), [(None, 1)]),
        (MapType(1, "string", 2, "int"), [1]), (MapType(1, "string", 2, "int", value_required=True), {"a": None}),
        (IntegerType(), pa.scalar("x")), (IntegerType(), pa.scalar(2**40)), (IntegerType(), object()),
        (LongType(), 10**5000), (DateType(), -(10**5000)), (DoubleType(), 10**5000), (StringType(), 10**5000),
    ],
    ids=lambda part: re.sub(" at 0x[0-9a-f]+", "", shown(part))[:40],
)  # fmt: skip
def test_what_would_lose_something_is_refused(kind, wrong):
    with pytest.raises(InvalidArgument) as caught:
        to_internal(kind, wrong)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("kind", "wrong", "sign"),
    [(IntegerType(), 2**31, 1), (IntegerType(), -(2**31) - 1, -1), (IntegerType(), math.inf, 1),
     (FloatType(), -1e300, -1), (DecimalType(3, 1), 1000, 1), (DecimalType(3, 1), "-1e50", -1), (DateType(), 2**31, 1),
     (TimestampNanoType(), datetime(1600, 1, 1), -1), (DoubleType(), -(10**400), -1),
     (DoubleType(), Decimal("1e400"), 1)],
    ids=lambda part: re.sub(" at 0x[0-9a-f]+", "", shown(part))[:40],
)  # fmt: skip
def test_an_error_says_on_which_side_a_number_is_out_of_range(kind, wrong, sign):
    with pytest.raises(InvalidArgument) as caught:
        to_internal(kind, wrong)
    assert caught.value.out_of_range == sign


@pytest.mark.parametrize(
    ("kind", "wrong"), [(IntegerType(), 1.5), (DecimalType(9, 2), "1.234"), (TimestampType(), pd.Timestamp(7))]
)
def test_an_error_says_when_digits_would_be_lost(kind, wrong):
    with pytest.raises(InvalidArgument) as caught:
        to_internal(kind, wrong)
    assert caught.value.inexact is True


@pytest.mark.spec("TYP-11")
def test_one_instant_written_in_two_zones_is_one_value():
    early = to_internal(TimestamptzType(), datetime(2017, 11, 16, 17, 10, 34, tzinfo=PST))
    assert early == to_internal(TimestamptzType(), "2017-11-17T01:10:34+00:00")
    assert to_python(TimestamptzType(), early) == datetime(2017, 11, 17, 1, 10, 34, tzinfo=UTC)


@pytest.mark.spec("TYP-10", "TYP-30")
def test_a_wall_clock_time_is_the_same_in_every_zone_of_the_session(monkeypatch):
    wall = datetime(2017, 11, 16, 17, 10, 34)
    for zone in ("America/Los_Angeles", "UTC", "Asia/Kathmandu"):
        monkeypatch.setenv("TZ", zone)
        assert to_internal(TimestampType(), wall) == 1510852234000000
        assert to_python(TimestampType(), 1510852234000000) == wall


@given(st.data())
def test_every_value_survives_pythons_objects(data):
    kind = data.draw(types())
    internal = data.draw(values(kind, python=True))
    assume(not _loses_keys(kind, internal))
    shown = to_python(kind, internal)
    assert same(to_internal(kind, shown), internal)


def _loses_keys(kind, internal):
    """A dict holds a key once, as a map should; a value made at random may hold it twice."""
    if internal is None:
        return False
    match kind:
        case MapType():
            keys = [to_python(kind.key_type, key) for key, _ in internal]
            twice = any(keys.count(key) > 1 for key in keys)
            return twice or any(_loses_keys(kind.key_type, k) or _loses_keys(kind.value_type, v) for k, v in internal)
        case ListType():
            return any(_loses_keys(kind.element_type, item) for item in internal)
        case StructType():
            return any(_loses_keys(child.field_type, v) for child, v in zip(kind.fields, internal, strict=True))
    return False


@pytest.mark.spec("DEF-14", "SCH-14")
def test_a_promoted_date_is_its_midnight():
    assert promote(DateType(), TimestampType(), 17486) == 1510790400000000
    assert promote(DateType(), TimestampNanoType(), 17486) == 1510790400000000000
    assert promote(DateType(), TimestampType(), None) is None
    assert promote(IntegerType(), LongType(), 5) == 5
    assert promote(DateType(), DateType(), 5) == 5
    with pytest.raises(InvalidArgument) as caught:
        promote(DateType(), TimestampNanoType(), -(2**31))
    assert caught.value.out_of_range == -1


def default_of(case):
    """The value of `point` in a row written without it, or with only some of its fields."""
    children = [NestedField(1, "x", "int", False, None, case["x"], case["x"])]
    children.append(NestedField(2, "y", "int", False, None, case["y"], case["y"]))
    stored = None if case["point_default"] is None else ()
    return NestedField(3, "point", StructType(*children), False, None, stored, stored)


@pytest.mark.spec("DEF-08", "DEF-10")
@pytest.mark.parametrize("which", [initial_value, write_value])
@pytest.mark.parametrize("case", VECTORS["struct_default_point"], ids=str)
def test_a_structs_default_is_made_of_its_fields_defaults(case, which):
    point = default_of(case)
    if case["data"] == "missing":
        made = which(point)
    else:
        made = tuple(case["data"].get(child.name, which(child)) for child in point.field_type.fields)
    assert made == (None if case["result"] is None else tuple(case["result"].values()))


@pytest.mark.spec("DEF-08")
def test_defaults_of_structs_in_structs_reach_all_the_way_down():
    inner = NestedField(2, "inner", StructType(NestedField(3, "x", "int", initial_default=7)), initial_default=())
    outer = NestedField(1, "outer", StructType(inner, NestedField(4, "y", "int")), initial_default=())
    assert initial_value(outer) == ((7,), None)
    assert write_value(outer) is None

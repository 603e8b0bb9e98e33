import json
import uuid

import pytest
from format_strategies import same, typed_values, types
from hypothesis import given
from icefield.errors import InvalidArgument
from icefield.types import (
    BinaryType,
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
from icefield.types.values import to_internal, value_from_json, value_to_json
from vectors import VECTORS

NESTED = {
    "struct<1: int, 2: string>": StructType(NestedField(1, "a", "int"), NestedField(2, "b", "string")),
    "list<int>": ListType(3, "int"),
    "map<string,int>": MapType(4, "string", 5, "int"),
}


def kind_of(text):
    return NESTED.get(text) or parse_type(text.replace("fixed(4)", "fixed[4]"))


def internal_of(case):
    kind, internal = kind_of(case["type"]), case["internal"]
    if isinstance(kind, (BinaryType, FixedType)):
        return bytes.fromhex(internal)
    if isinstance(kind, StructType):
        return tuple(internal.values())
    if isinstance(kind, MapType):
        return tuple(map(tuple, internal))
    return to_internal(kind, internal)


@pytest.mark.spec(*(f"SVJ-{n:02d}" for n in range(1, 17)), "SVS-22")
@pytest.mark.parametrize("case", VECTORS["single_value_json"], ids=lambda case: f"{case['type']} {case['json']}")
def test_one_value_becomes_the_vectors_json_and_comes_back(case):
    kind, read = kind_of(case["type"]), value_from_json(kind_of(case["type"]), case["json"])
    if case["internal"] is not None:
        assert same(read, internal_of(case))
    assert value_to_json(kind, read) == case["json"]
    assert type(value_to_json(kind, read)) is type(case["json"])
    for other in case.get("parse_also", []):
        assert value_from_json(kind, other) == read


@pytest.mark.spec("SVJ-18", "SVJ-04", "SVJ-07", "SVJ-08", "SVJ-12", "SVJ-02")
@pytest.mark.parametrize("case", VECTORS["single_value_json_rejected"], ids=lambda case: case["why"])
def test_json_of_another_kind_or_form_is_refused_and_the_type_named(case):
    kind = kind_of(case["type"])
    with pytest.raises(InvalidArgument) as caught:
        value_from_json(kind, case["json"])
    assert str(kind) in str(caught.value) or "timestamp" in str(caught.value)


@pytest.mark.spec("SVJ-18")
@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("boolean", 1), ("boolean", "true"), ("int", True), ("int", 1.0), ("long", 2**63), ("long", "1"),
        ("float", "1"), ("float", True), ("float", 1e300), ("double", 10**400), ("double", float("inf")),
        ("double", float("nan")), ("date", 1), ("date", "2017-11-16T00:00:00"), ("time", "24:00:00"),
        ("timestamp", "2017-11-16"), ("timestamp", "2017-11-16 22:31:08"), ("timestamptz", "2017-11-16T22:31:08Z"),
        ("timestamp", 1), ("string", 1), ("uuid", "f79c3e09677c4bbda4793f349cb785e7"), ("uuid", 1),
        ("uuid", "{f79c3e09-677c-4bbd-a479-3f349cb785e7}"), ("binary", "0"), ("binary", "00 01"), ("binary", "zz"),
        ("decimal(9,2)", "NaN"), ("decimal(9,2)", "12345678.90"), ("decimal(9,2)", "1_0.00"),
        ("decimal(9,2)", "1" * 1000), ("geometry", 1), ("geometry", "POINT"), ("unknown", 1), ("variant", {}),
        ("struct<1: int, 2: string>", [1, "a"]), ("struct<1: int, 2: string>", {"a": 1}),
        ("struct<1: int, 2: string>", {"1": "x"}), ("list<int>", {}), ("list<int>", ["x"]),
        ("map<string,int>", {"keys": ["a"], "values": []}), ("map<string,int>", {"keys": ["a"]}),
        ("map<string,int>", {"keys": [None], "values": [1]}), ("map<string,int>", [["a", 1]]),
    ],
)  # fmt: skip
def test_wrong_json_never_passes_for_a_value(kind, wrong):
    with pytest.raises(InvalidArgument):
        value_from_json(kind_of(kind), wrong)


@pytest.mark.spec("SVJ-17")
@pytest.mark.parametrize("kind", ["int", "unknown", "struct<1: int, 2: string>", "variant"])
def test_null_is_null(kind):
    assert value_from_json(kind_of(kind), None) is None
    assert value_to_json(kind_of(kind), None) is None


@pytest.mark.spec("SVJ-17", "SVJ-13")
def test_an_absent_field_of_a_struct_is_null_and_one_that_is_gone_is_ignored():
    assert value_from_json(NESTED["struct<1: int, 2: string>"], {"2": "x", "77": 5}) == (None, "x")
    assert value_to_json(NESTED["struct<1: int, 2: string>"], (None, "x")) == {"2": "x"}
    required = StructType(NestedField(1, "a", "int", required=True))
    with pytest.raises(InvalidArgument, match="'a'"):
        value_from_json(required, {})


@pytest.mark.spec("SVJ-03")
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_json_lacks_is_refused_on_write(number):
    for kind in (FloatType(), DoubleType()):
        with pytest.raises(InvalidArgument):
            value_to_json(kind, number)


@pytest.mark.spec("SVJ-03")
def test_an_integer_is_read_as_a_float():
    assert same(value_from_json(DoubleType(), 1), 1.0)
    assert same(value_from_json(FloatType(), 1), 1.0)


@pytest.mark.spec("SVJ-02")
def test_longs_keep_every_digit_through_json_string():
    assert value_from_json(LongType(), json.loads(json.dumps(value_to_json(LongType(), 2**63 - 1)))) == 2**63 - 1


@pytest.mark.spec("SVJ-04")
def test_small_decimals_are_written_without_exponent():
    kind = DecimalType(38, 10)
    assert value_to_json(kind, to_internal(kind, "0.0000000001")) == "0.0000000001"
    assert value_to_json(kind, to_internal(kind, 0)) == "0.0000000000"
    assert same(value_from_json(kind, "1E-10"), to_internal(kind, "0.0000000001"))


@pytest.mark.spec("SVJ-11")
def test_a_uuid_is_written_in_lower_case_and_read_in_either():
    value = uuid.uuid4()
    assert value_to_json(UUIDType(), value.bytes) == str(value)
    assert value_from_json(UUIDType(), str(value).upper()) == value.bytes


@pytest.mark.spec("SVJ-07")
def test_fractions_of_a_second_may_be_short_or_absent_on_read():
    for text in ("2017-11-16T22:31:08", "2017-11-16T22:31:08.0", "2017-11-16T22:31"):
        assert value_from_json(TimestampType(), text) is not None
    assert value_from_json(TimestampType(), "2017-11-16T22:31:08") == 1510871468000000


@pytest.mark.spec("SVJ-06", "SVJ-07")
@pytest.mark.parametrize("fraction", ["000000", "000001", "000010", "001000", "100000", "999999"])
def test_the_zeros_of_a_fraction_are_written_on_both_sides(fraction):
    micros = ((22 * 60 + 31) * 60 + 8) * 10**6 + int(fraction)
    assert value_to_json(TimeType(), micros) == f"22:31:08.{fraction}"
    assert value_to_json(TimestampType(), micros) == f"1970-01-01T22:31:08.{fraction}"
    assert value_to_json(TimestampNanoType(), micros * 1000 + 1) == f"1970-01-01T22:31:08.{fraction}001"


@pytest.mark.slow
@given(typed_values(types(), finite=True))
def test_every_value_survives_its_json_string(pair):
    kind, internal = pair
    text = json.dumps(value_to_json(kind, internal), allow_nan=False)
    assert same(value_from_json(kind, json.loads(text)), internal)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [(IntegerType(), "x"), (StringType(), 1), (BinaryType(), 1), (UUIDType(), b"x"), (GeometryType(), b"x"),
     (VariantType(), (b"", b"")), (UnknownType(), 1), (TimestampType(), "x"), (ListType(1, "int"), 5),
     (StructType(NestedField(1, "a", "int")), (1, 2)), (DecimalType(9, 2), 1.5)],
)  # fmt: skip
def test_what_is_no_internal_value_has_no_json(kind, wrong):
    with pytest.raises(InvalidArgument):
        value_to_json(kind, wrong)

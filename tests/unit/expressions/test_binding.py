"""Binding: columns are found, literals are cast exactly, and predicates that the schema decides are folded."""

import datetime as dt
import math
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidExpression
from icefield.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundPredicate,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Op,
    Or,
    StartsWith,
    bind,
    bound_leaves,
    field_ids,
    parse,
)
from icefield.expressions.bound import is_bound
from icefield.expressions.expressions import leaves
from icefield.schema import Schema
from icefield.types import ListType, MapType, NestedField, StructType, UnknownType, parse_type
from naive_filters import ALL_NAMES, SCHEMA, column_name, expressions, naive, naive_test


def schema_of(kind, required=False):
    return Schema(NestedField(1, "x", parse_type(kind), required=required))


def bound(kind, expression):
    return bind(schema_of(kind), parse(expression) if isinstance(expression, str) else expression)


def leaf(kind, literal):
    found = bound(kind, EqualTo("x", literal))
    assert isinstance(found, BoundPredicate), found
    assert found.op is Op.EQ
    return found.value


@pytest.mark.parametrize(
    ("kind", "literal", "internal"),
    [
        ("boolean", True, True),
        ("boolean", "FALSE", False),
        ("int", 5, 5),
        ("int", "5", 5),
        ("int", Decimal("5.0"), 5),
        ("int", 5.0, 5),
        ("long", 2**62, 2**62),
        ("float", 0.1, float(np.float32(0.1))),
        ("float", 5, 5.0),
        ("double", Decimal("0.1"), 0.1),
        ("double", "1e3", 1000.0),
        ("double", math.inf, math.inf),
        ("decimal(9,2)", 5, Decimal("5.00")),
        ("decimal(9,2)", "5.1", Decimal("5.10")),
        ("decimal(9,2)", 0.1, Decimal("0.10")),
        ("decimal(9,2)", Decimal("-9999999.99"), Decimal("-9999999.99")),
        ("decimal(38,0)", 10**38 - 1, Decimal(10**38 - 1)),
        ("date", dt.date(2017, 12, 1), 17501),
        ("date", "2017-12-01", 17501),
        ("date", 17501, 17501),
        ("date", dt.datetime(2017, 12, 1), 17501),
        ("date", "2017-12-01T00:00:00", 17501),
        ("time", dt.time(0, 0, 1), 1_000_000),
        ("time", "00:00:01.5", 1_500_000),
        ("time", 7, 7),
        ("timestamp", "2017-12-01", 17501 * 86_400_000_000),
        ("timestamp", dt.date(2017, 12, 1), 17501 * 86_400_000_000),
        ("timestamp", "2017-12-01 10:00:00", 1_512_122_400_000_000),
        ("timestamp", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), -1),
        ("timestamp", "1969-12-31T23:59:59.999999000", -1),
        ("timestamptz", "2017-12-01", 17501 * 86_400_000_000),
        ("timestamptz", "2017-12-01T12:00:00+02:00", 1_512_122_400_000_000),
        ("timestamptz", dt.datetime(2017, 12, 1, 10, tzinfo=dt.UTC), 1_512_122_400_000_000),
        ("timestamptz", "2017-12-01T10:00:00Z", 1_512_122_400_000_000),
        ("timestamp_ns", "2017-12-01T10:00:00.000000001", 1_512_122_400_000_000_001),
        ("timestamp_ns", np.datetime64("1969-12-31T23:59:59.999999999"), -1),
        ("timestamptz_ns", "1970-01-01T00:00:00.000001+00:00", 1000),
        ("string", "a", "a"),
        ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7")),
        ("uuid", uuid.UUID(int=1), bytes(15) + b"\x01"),
        ("uuid", bytes(16), bytes(16)),
        ("fixed[2]", b"ab", b"ab"),
        ("fixed[2]", "ab", b"ab"),
        ("binary", b"\x00", b"\x00"),
        ("binary", "é", "é".encode()),
    ],
)
@pytest.mark.spec("SCAN-20")
def test_a_literal_is_cast_to_the_type_of_its_column(kind, literal, internal):
    found = leaf(kind, literal)
    assert found == internal
    assert type(found) is type(internal)


@pytest.mark.parametrize(
    ("kind", "literal", "reason"),
    [
        ("int", "abc", "cannot be compared"),
        ("int", True, "cannot be compared"),
        ("int", b"a", "cannot be compared"),
        ("int", "2024-01-01", "cannot be compared"),
        ("double", "nan", "cannot be compared"),
        ("boolean", 1, "cannot be compared"),
        ("boolean", "yes", "cannot be compared"),
        ("decimal(9,2)", "1,5", "cannot be compared"),
        ("decimal(9,2)", True, "cannot be compared"),
        ("date", "2024-13-01", "month"),
        ("date", "1.1.2024", "2017-11-16"),
        ("date", 1.5, "cannot be compared"),
        ("time", "25:00:00", "out of range"),
        ("timestamp", "2024-01-01T00:00:00+01:00", "leave it out"),
        ("timestamptz", "2024-01-01T00:00:00", "add one"),
        ("timestamp", "soon", "write it as"),
        ("string", 5, "cannot be compared"),
        ("string", b"a", "cannot be compared"),
        ("uuid", "abc", "cannot be compared"),
        ("uuid", b"abc", "cannot be compared"),
        ("fixed[2]", b"abc", "3 bytes"),
        ("binary", 5, "cannot be compared"),
        ("geometry", b"abc", "only be tested for null"),
    ],
)
def test_a_literal_of_another_kind_is_refused_with_the_name_of_the_column(kind, literal, reason):
    for expression in (EqualTo("x", literal), Not(In("x", [literal]))):
        with pytest.raises(InvalidExpression, match=reason) as error:
            bound(kind, expression)
        assert str(error.value).startswith("column x: ")
        assert error.value.field_id == 1


NEVER, ANY_VALUE = "false", "x is not null"


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("int", "x < 3000000000", ANY_VALUE),
        ("int", "x <= 3000000000", ANY_VALUE),
        ("int", "x != 3000000000", ANY_VALUE),
        ("int", "x > 3000000000", NEVER),
        ("int", "x = 3000000000", NEVER),
        ("int", "x < -3000000000", NEVER),
        ("int", "x >= -3000000000", ANY_VALUE),
        ("int", "x >= 1e999", NEVER),
        ("int", "x < 2.5", "x <= 2"),
        ("int", "x <= 2.5", "x <= 2"),
        ("int", "x > 2.5", "x > 2"),
        ("int", "x >= -2.5", "x > -3"),
        ("int", "x = 2.5", NEVER),
        ("int", "x != 2.5", ANY_VALUE),
        ("int", "x in (2.5, 3000000000)", NEVER),
        ("int", "x in (2.5, 3)", "x = 3"),
        ("int", "x not in (2.5)", ANY_VALUE),
        ("int", "x not in (2.5, 3, 3.0)", "x != 3"),
        ("long", "x <= 9223372036854775808", ANY_VALUE),
        ("decimal(9,2)", "x < 1.555", "x <= 1.55"),
        ("decimal(9,2)", "x > -1.555", "x > -1.56"),
        ("decimal(9,2)", "x = 1.555", NEVER),
        ("decimal(9,2)", "x >= 10000000", NEVER),
        ("decimal(9,2)", "x < 10000000", ANY_VALUE),
        ("decimal(9,2)", "x > 9999999.991", "x > 9999999.99"),
        ("decimal(9,2)", "x > -1e999", ANY_VALUE),
        ("float", "x > 1e300", "x > 3.4028234663852886e+38"),
        ("float", "x < 1e300", "x <= 3.4028234663852886e+38"),
        ("float", "x < -1e300", "x <= -1e999"),
        ("float", "x = 1e300", NEVER),
        ("date", "x < '2017-12-01T12:00:00'", "x <= '2017-12-01'"),
        ("date", "x = '2017-12-01T12:00:00'", NEVER),
        ("date", "x > 3000000000", NEVER),
        ("time", "x >= 86400000000", NEVER),
        ("time", "x < '00:00:00.0000015'", "x <= '00:00:00.000001'"),
        ("timestamp", "x > '2017-12-01T00:00:00.0000009'", "x > '2017-12-01T00:00:00.000000'"),
        ("timestamp_ns", "x < '3000-01-01'", ANY_VALUE),
        ("timestamp_ns", "x < '1000-01-01'", NEVER),
        ("string", "x like '%'", ANY_VALUE),
        ("string", "x not like '%'", NEVER),
        ("int", "x in ()", "false"),
        ("int", "x not in ()", "true"),
        ("int", "x is nan", "false"),
        ("int", "not (x is nan)", "true"),
        ("int", "x = 1 or not (x is nan)", "true"),
        ("int", "x = 1 and x is nan", "false"),
    ],
)
@pytest.mark.spec("SCAN-24")
def test_a_literal_outside_or_between_the_values_of_the_type_keeps_its_meaning(kind, text, expected):
    found = bound(kind, text)
    parsed = parse(expected)
    assert found == (bind(schema_of(kind), parsed) if list(leaves(parsed)) else parsed)


NUMBERS = st.one_of(
    st.sampled_from(
        [Decimal("2.5"), 2.5, 3_000_000_000, -3_000_000_000, 2**31 - 1, Decimal("2147483647.5"), 10**12, -0.1]
    ),
    st.integers(-3, 3),
    st.decimals(-4, 4, places=3),
    st.floats(-4, 4),
)


@pytest.mark.spec("SCAN-24")
@settings(max_examples=300, deadline=None)
@given(st.data(), NUMBERS)
def test_a_comparison_with_any_number_is_exact_for_whole_and_decimal_columns(data, number):
    kind, value = data.draw(
        st.one_of(
            st.tuples(st.just("int"), st.one_of(st.integers(-4, 4), st.sampled_from([2**31 - 1, -(2**31)]))),
            st.tuples(st.just("decimal(9,2)"), st.decimals(-4, 4, places=2)),
        )
    )
    maker = data.draw(
        st.sampled_from([EqualTo, NotEqualTo, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual])
    )
    # A float stands for the exact value of its decimal form.
    exact = Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
    expected = naive_test(maker.op, Fraction(value), (exact,))
    assert naive(bound(kind, maker("x", number)), {"x": value}) is expected


@pytest.mark.spec("SCAN-24")
@settings(max_examples=150, deadline=None)
@given(expressions(ALL_NAMES))
def test_the_string_of_a_bound_expression_binds_to_the_same_again(expression):
    found = bind(SCHEMA, expression)
    assert bind(SCHEMA, parse(str(found))) == found
    assert bind(SCHEMA, found) is found or bind(SCHEMA, found) == found


def test_negation_is_pushed_down_to_the_predicates():
    found = bind(SCHEMA, parse("not (c_int = 1 and (c_int < 2 or c_string like 'a%' or not (c_int in (1, 2))))"))
    assert str(found) == "c_int != 1 or (c_int >= 2 and c_string not like 'a%' and c_int in (1, 2))"
    assert bind(SCHEMA, ~found) == bind(
        SCHEMA, parse("c_int = 1 and (c_int < 2 or c_string like 'a%' or c_int not in (1, 2))")
    )
    for expression in (
        IsNull("c_int"),
        IsNaN("c_float"),
        StartsWith("c_string", "a"),
        In("c_int", [1, 2]),
        LessThan("c_int", 1),
    ):
        assert bind(SCHEMA, Not(expression)) == bind(SCHEMA, ~expression)
        assert bind(SCHEMA, Not(Not(expression))) == bind(SCHEMA, expression)
    assert bind(SCHEMA, Not(AlwaysTrue())) == AlwaysFalse()


def test_tests_for_null_fold_only_where_no_row_can_have_null():
    inner = NestedField(3, "i", parse_type("int"), required=True)
    schema = Schema(
        NestedField(1, "r", parse_type("int"), required=True),
        NestedField(2, "opt", StructType(inner)),
        NestedField(4, "req", StructType(NestedField(5, "i", parse_type("int"), required=True)), required=True),
        NestedField(6, "u", UnknownType()),
    )
    assert bind(schema, IsNull("r")) == AlwaysFalse()
    assert bind(schema, NotNull("r")) == AlwaysTrue()
    assert bind(schema, LessThan("r", 2**40)) == AlwaysTrue()
    assert isinstance(bind(schema, IsNull("opt.i")), BoundPredicate)
    assert bind(schema, IsNull("req.i")) == AlwaysFalse()
    assert bind(schema, NotNull("req")) == AlwaysTrue()
    assert bind(schema, IsNull("u")) == AlwaysTrue()
    assert bind(schema, NotNull("u")) == AlwaysFalse()
    for expression in (EqualTo("u", 1), NotIn("u", [1]), StartsWith("u", "a")):
        assert bind(schema, expression) == AlwaysFalse()
    assert bind(schema, NotIn("u", [])) == AlwaysTrue()


def test_constants_are_simplified_away():
    assert bind(SCHEMA, And(AlwaysTrue(), EqualTo("c_int", 1))) == bind(SCHEMA, EqualTo("c_int", 1))
    assert bind(SCHEMA, Or(AlwaysTrue(), EqualTo("c_int", 1))) == AlwaysTrue()
    assert bind(SCHEMA, And(EqualTo("c_int", 2**40), EqualTo("c_int", 1))) == AlwaysFalse()


def test_columns_are_found_by_path_and_in_any_case_on_demand():
    found = bind(SCHEMA, parse("s.deep.t = 'a' and c_int = 1"))
    assert [leaf.path for leaf in bound_leaves(found)] == [("s", "deep", "t"), ("c_int",)]
    assert field_ids(found) == {54, SCHEMA.find_field("c_int").field_id}
    loose = bind(SCHEMA, parse("S.Deep.T = 'a' and C_INT = 1"), case_sensitive=False)
    assert loose == found
    with pytest.raises(InvalidExpression, match=r"C_INT.*did you mean 'c_int'|C_INT"):
        bind(SCHEMA, EqualTo("C_INT", 1))


def test_a_struct_type_can_be_bound_to_as_partitions_are():
    struct = StructType(NestedField(1000, "day", parse_type("date")), NestedField(1001, "a.b", parse_type("int")))
    assert bind(struct, EqualTo("day", 5)).field.field_id == 1000
    assert bind(struct, EqualTo("a.b", 5)).path == ("a.b",)


def test_what_cannot_be_filtered_on_is_refused():
    schema = Schema(
        NestedField(1, "l", ListType(2, parse_type("int"))),
        NestedField(3, "m", MapType(4, parse_type("string"), 5, StructType(NestedField(6, "v", parse_type("int"))))),
        NestedField(7, "s", StructType(NestedField(8, "i", parse_type("int")))),
    )
    for name in ("l.element", "m.key", "m.value.v"):
        with pytest.raises(InvalidExpression, match="list or map"):
            bind(schema, EqualTo(name, 1))
    for name in ("l", "m", "s"):
        assert bind(schema, IsNull(name)).op is Op.IS_NULL
        with pytest.raises(InvalidExpression, match="only be tested for null"):
            bind(schema, EqualTo(name, 1))
    with pytest.raises(InvalidExpression, match="no column"):
        bind(schema, EqualTo("nope", 1))
    with pytest.raises(InvalidExpression, match="only a string"):
        bind(schema, NotStartsWith("s.i", "a"))


@pytest.mark.spec("SCAN-20")
def test_nan_tests_bind_to_floating_columns_only():
    for kind in ("float", "double"):
        assert bind(SCHEMA, IsNaN(column_name(kind))).op is Op.IS_NAN
        assert bind(SCHEMA, NotNaN(column_name(kind))).op is Op.NOT_NAN
    assert bind(SCHEMA, IsNaN("c_int")) == AlwaysFalse()
    assert bind(SCHEMA, NotNaN("c_int")) == AlwaysTrue()


def test_a_list_is_sorted_and_has_each_value_once():
    assert bind(SCHEMA, In("c_string", ["b", "a", "b", "é"])).value == ("a", "b", "é")
    assert bind(SCHEMA, In("c_int", [3, 1, 2, 1])) == bind(SCHEMA, In("c_int", [1, 2, 3]))
    assert bind(SCHEMA, GreaterThan("c_int", 1)) != bind(SCHEMA, GreaterThan("c_long", 1))


def test_only_predicates_and_constants_that_are_bound_are_bound():
    bound = bind(SCHEMA, parse("c_int = 1 and not (c_int = 2)"))
    assert is_bound(bound)
    assert is_bound(AlwaysTrue())
    assert is_bound(AlwaysFalse())
    assert not is_bound(parse("c_int = 1"))
    assert not is_bound(And(bound, parse("c_int = 1")))

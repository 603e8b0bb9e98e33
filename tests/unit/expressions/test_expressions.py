"""Filters that users build: the objects, their equality and their strings."""

import copy
import datetime as dt
import math
import pickle
import uuid
from dataclasses import FrozenInstanceError
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidExpression
from icefield.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
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
    Reference,
    StartsWith,
    conjunction,
    disjunction,
    parse,
)

A, B, C = EqualTo("a", 1), EqualTo("b", 2), EqualTo("c", 3)

NAMES = st.one_of(
    st.sampled_from(
        ["a", "a.b", "and", "A b", 'q"uote', "back`tick", "x'", "1st", "é", "null.is", "a..b", ".", "a$b", "$"]
    ),
    st.text(min_size=1, max_size=6),
    st.lists(st.text(max_size=4), min_size=1, max_size=3).map(tuple),
)
NUMBERS = st.one_of(
    st.integers(-(10**30), 10**30),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.sampled_from([Decimal("1E+30"), Decimal("-0.000"), Decimal("1E-20"), Decimal(7)]),
    st.floats(allow_nan=False),
)
LITERALS = st.one_of(NUMBERS, st.booleans(), st.text(max_size=8), st.binary(max_size=5))
TEXTS = st.text(st.sampled_from("a%_\\'\"\n é"), max_size=6)
EVERY_PREDICATE = st.one_of(
    *(st.builds(kind, NAMES) for kind in (IsNull, NotNull, IsNaN, NotNaN)),
    *(
        st.builds(kind, NAMES, LITERALS)
        for kind in (EqualTo, NotEqualTo, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual)
    ),
    *(st.builds(kind, NAMES, st.lists(LITERALS, max_size=4)) for kind in (In, NotIn)),
    *(st.builds(kind, NAMES, TEXTS) for kind in (StartsWith, NotStartsWith)),
)
EXPRESSIONS = st.recursive(
    st.one_of(EVERY_PREDICATE, st.sampled_from([AlwaysTrue(), AlwaysFalse()])),
    lambda inner: st.one_of(
        st.builds(And, inner, inner),
        st.builds(Or, inner, inner),
        st.builds(Or, inner, inner, inner),
        st.builds(Not, inner),
    ),
    max_leaves=8,
)


@settings(max_examples=600, deadline=None)
@given(EXPRESSIONS)
def test_the_string_of_an_expression_reads_back_as_an_equal_one(expression):
    again = parse(str(expression))
    assert again == expression
    assert hash(again) == hash(expression)
    assert str(again) == str(expression)


@settings(max_examples=100, deadline=None)
@given(EXPRESSIONS)
def test_expressions_can_be_pickled_copied_and_evaluated_from_their_repr(expression):
    assert pickle.loads(pickle.dumps(expression)) == expression
    assert copy.deepcopy(expression) == expression
    names = {"inf": math.inf, "Decimal": Decimal}
    names |= {kind.__name__: kind for kind in (AlwaysTrue, AlwaysFalse, And, Or, Not, *_PREDICATES)}
    assert eval(repr(expression), names) == expression


_PREDICATES = (
    IsNull, NotNull, IsNaN, NotNaN, EqualTo, NotEqualTo, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual,
    In, NotIn, StartsWith, NotStartsWith,
)  # fmt: skip


@pytest.mark.spec("SCAN-20")
def test_there_is_a_predicate_for_each_operator_and_its_negation():
    assert {kind.op for kind in _PREDICATES} == set(Op)
    for kind in _PREDICATES:
        predicate = kind("x") if kind.op.is_unary else kind("x", ["a", "b"] if kind.op.is_set else "a")
        assert (~predicate).op is kind.op.negated
        assert ~~predicate == predicate


def test_expressions_combine_with_operators_and_simplify():
    assert A & B & C == And(A, B, C) == And(A, And(B, C))
    assert Or(A, B, C) == A | B | C
    assert A & AlwaysTrue() == A
    assert (A & AlwaysFalse()) == AlwaysFalse()
    assert (A | AlwaysTrue()) == AlwaysTrue()
    assert A | AlwaysFalse() == A
    assert ~AlwaysTrue() == AlwaysFalse()
    assert ~~And(A, B) == And(A, B)
    assert conjunction([]) == AlwaysTrue()
    assert disjunction([]) == AlwaysFalse()
    assert And(A, AlwaysTrue()) != A


def test_literals_are_equal_when_they_mean_the_same_number_and_only_then():
    assert EqualTo("a", 1) == EqualTo("a", Decimal("1.00"))
    assert EqualTo("a", 1) != EqualTo("a", True)
    assert EqualTo("a", 1) != EqualTo("a", 1.0)
    assert EqualTo("a", "1") != EqualTo("a", 1)
    assert EqualTo("a", "x") != EqualTo("a", b"x")
    assert In("a", [1, 2, 2]) == In("a", (2, 1))
    assert In("a", [1, 2]) != In("a", [1, 3])
    assert EqualTo("a", 1) != EqualTo("b", 1)


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (dt.date(2024, 1, 31), "2024-01-31"),
        (dt.datetime(2024, 1, 31, 12, 30, 0, 5), "2024-01-31T12:30:00.000005"),
        (dt.datetime(2024, 1, 31, tzinfo=dt.UTC), "2024-01-31T00:00:00+00:00"),
        (dt.time(12, 30), "12:30:00"),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (np.int16(5), 5),
        (np.float64(1.5), 1.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.datetime64("2024-01-31T00:00:00.000000001"), "2024-01-31T00:00:00.000000001"),
        (pa.scalar(5, pa.int8()), 5),
        (pa.scalar(Decimal("1.50")), Decimal("1.50")),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"ab"), b"ab"),
    ],
)
def test_python_numpy_and_arrow_values_become_literals(value, literal):
    predicate = EqualTo("a", value)
    assert predicate.literal == literal
    assert type(predicate.literal) in (bool, int, Decimal, float, str, bytes)
    assert parse(str(predicate)) == predicate


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: EqualTo("a", None), "is null"),
        (lambda: EqualTo("a", pa.scalar(None, pa.int8())), "is null"),
        (lambda: EqualTo("a", np.datetime64("NaT")), "is null"),
        (lambda: In("a", [1, math.nan]), "is nan"),
        (lambda: EqualTo("a", Decimal("NaN")), "not a number"),
        (lambda: EqualTo("a", Decimal("1E+5000")), "digits"),
        (lambda: EqualTo("a", 10**2000), "digits"),
        (lambda: EqualTo("a", object()), "object cannot"),
        (lambda: EqualTo("a", "\ud800"), "Unicode"),
        (lambda: In("a", "abc"), "list of literals"),
        (lambda: In("a", 5), "list of literals, not 5"),
        (lambda: StartsWith("a", 5), "start of a string"),
        (lambda: EqualTo("", 5), "column is named"),
        (lambda: EqualTo(5, 5), "column is named"),
        (lambda: And(A, "b = 2"), "parse"),
        (lambda: Not(True), "parse"),
    ],
)
def test_what_is_no_expression_is_refused_with_what_to_do(make, reason):
    with pytest.raises(InvalidExpression, match=reason):
        make()


def test_nesting_is_bounded_and_width_is_not():
    wide = conjunction(EqualTo("a", value) for value in range(5000))
    assert wide.depth == 2
    assert parse(str(wide)) == wide
    deep = A
    for _ in range(49):
        deep = Or(B, And(C, deep))
    assert parse(str(deep)) == deep
    with pytest.raises(InvalidExpression, match="deeper than 100"):
        Or(B, And(A, Not(deep)))


def test_expressions_cannot_be_changed():
    for thing, name in ((A, "literal"), (A & B, "children"), (Not(A), "child"), (Reference("a"), "name")):
        with pytest.raises(FrozenInstanceError):
            setattr(thing, name, None)
    with pytest.raises(FrozenInstanceError):
        del A.term


def test_a_reference_is_a_full_name_or_a_path():
    assert Reference(("a", "b")) == Reference("a.b")
    assert Reference(("a.b",)) != Reference("a.b")
    assert str(Reference("a.order by")) == 'a."order by"'
    assert str(Reference(("a.b", "c"))) == '"a.b".c'
    assert IsNull(Reference("a")) == IsNull("a")

"""The string form of filters."""

import time
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
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
    Or,
    StartsWith,
    as_expression,
    parse,
)
from icefield.expressions.lexer import fail
from icefield.expressions.literals import shown
from outcomes import counted_outcomes

X1, Y2, Z3 = EqualTo("x", 1), EqualTo("y", 2), EqualTo("z", 3)

ACCEPTED = {
    "x = 1": X1,
    "x == 1": X1,
    "x=1": X1,
    " ( x = 1 ) ": X1,
    "1 = x": X1,
    "x != 1": NotEqualTo("x", 1),
    "x <> 1": NotEqualTo("x", 1),
    "x < 1": LessThan("x", 1),
    "x <= 1": LessThanOrEqual("x", 1),
    "x > 1": GreaterThan("x", 1),
    "x >= 1": GreaterThanOrEqual("x", 1),
    "1 < x": GreaterThan("x", 1),
    "1 <= x": GreaterThanOrEqual("x", 1),
    "1 > x": LessThan("x", 1),
    "1 >= x": LessThanOrEqual("x", 1),
    "1 != x": NotEqualTo("x", 1),
    "x in (1, 2)": In("x", [1, 2]),
    "x IN ('a')": In("x", ["a"]),
    "x in ()": In("x", []),
    "x not in (1,2)": NotIn("x", [1, 2]),
    "x is null": IsNull("x"),
    "x IS NOT NULL": NotNull("x"),
    "x is nan": IsNaN("x"),
    "x is not NaN": NotNaN("x"),
    "x like 'a%'": StartsWith("x", "a"),
    "x not like 'a%'": NotStartsWith("x", "a"),
    "not x like 'a%'": Not(StartsWith("x", "a")),
    "x like '%'": StartsWith("x", ""),
    "x like 'a'": EqualTo("x", "a"),
    "x not like 'a'": NotEqualTo("x", "a"),
    r"x like 'a\%b%'": StartsWith("x", "a%b"),
    r"x like 'a\_b%'": StartsWith("x", "a_b"),
    r"x like 'a\\%'": StartsWith("x", "a\\"),
    r"x like 'a\b%'": StartsWith("x", r"a\b"),
    "x between 1 and 2": And(GreaterThanOrEqual("x", 1), LessThanOrEqual("x", 2)),
    "x not between 1 and 2": Or(LessThan("x", 1), GreaterThan("x", 2)),
    "x between 1 and 2 and y = 2": And(GreaterThanOrEqual("x", 1), LessThanOrEqual("x", 2), Y2),
    "x = 1 and y = 2 or z = 3": Or(And(X1, Y2), Z3),
    "x = 1 and (y = 2 or z = 3)": And(X1, Or(Y2, Z3)),
    "x = 1 or y = 2 and z = 3": Or(X1, And(Y2, Z3)),
    "not x = 1 and y = 2": And(Not(X1), Y2),
    "not (x = 1 and y = 2)": Not(And(X1, Y2)),
    "not not x = 1": Not(Not(X1)),
    "X = 1 AND Y = 2": And(EqualTo("X", 1), EqualTo("Y", 2)),
    "true": AlwaysTrue(),
    "FALSE or x = 1": Or(AlwaysFalse(), X1),
    "true = x": EqualTo("x", True),
    "x = true": EqualTo("x", True),
    "x = 'it''s'": EqualTo("x", "it's"),
    "x = ''": EqualTo("x", ""),
    "x = '\"`'": EqualTo("x", '"`'),
    "x = X'00ff'": EqualTo("x", b"\x00\xff"),
    "x = x''": EqualTo("x", b""),
    "x = -5": EqualTo("x", -5),
    "x=+5": EqualTo("x", 5),
    "x>-.5": GreaterThan("x", Decimal("-0.5")),
    "x = 1.50": EqualTo("x", Decimal("1.5")),
    "x = 1.": EqualTo("x", Decimal(1)),
    "x = 1.5e0": EqualTo("x", 1.5),
    "x = 1E3": EqualTo("x", 1000.0),
    "x = 1e999": EqualTo("x", float("inf")),
    "x = 007": EqualTo("x", 7),
    "x = date '2024-01-01'": EqualTo("x", "2024-01-01"),
    "x = TIMESTAMP '2024-01-01T00:00:00'": EqualTo("x", "2024-01-01T00:00:00"),
    "DATE '2024-01-01' <= date": GreaterThanOrEqual("date", "2024-01-01"),
    "date = '2024-01-01'": EqualTo("date", "2024-01-01"),
    "x in (DATE '2024-01-01', '2024-01-02')": In("x", ["2024-01-01", "2024-01-02"]),
    "a.b.c = 1": EqualTo("a.b.c", 1),
    "a . b = 1": EqualTo("a.b", 1),
    '"a b" = 1': EqualTo("a b", 1),
    "`a b` = 1": EqualTo("a b", 1),
    '"a ""b""" = 1': EqualTo('a "b"', 1),
    "`a ``b``` = 1": EqualTo("a `b`", 1),
    '"and".`or` = 1': EqualTo("and.or", 1),
    '"a.b".c = 1': EqualTo(("a.b", "c"), 1),
    "größe > 1": GreaterThan("größe", 1),
    "_x$1 = 1": EqualTo("_x$1", 1),
    "x\n=\t1 -- ".replace("-- ", ""): X1,
    "x": EqualTo("x", True),
    "not x": Not(EqualTo("x", True)),
    "(a.b)": EqualTo("a.b", True),
    "x and y = 2": And(EqualTo("x", True), Y2),
    'y = 2 or not ("and")': Or(Y2, Not(EqualTo("and", True))),
    "date or true": Or(EqualTo("date", True), AlwaysTrue()),
}


@pytest.mark.parametrize("text", ACCEPTED)
@pytest.mark.spec("SCAN-20")
def test_a_string_gives_the_expression_it_stands_for(text):
    assert parse(text) == ACCEPTED[text]


REFUSED = {
    "": (0, "expected"),
    "   ": (3, "expected"),
    "x 5": (2, "comparison"),
    "x (": (2, "comparison"),
    "x and": (5, "expected"),
    "x y": (2, "comparison"),
    "x =": (3, "a literal, found the end"),
    "x = y": (4, "a literal, found a column 'y'"),
    'x = "a"': (4, "single quotes"),
    "x = = 1": (4, "found an operator '='"),
    "x = 1 y = 2": (6, "'and', 'or' or the end"),
    "x = 1)": (5, "'and', 'or' or the end"),
    "(x = 1": (6, r"'\)'"),
    "and x = 1": (0, "keyword 'and'"),
    "x = 1 and": (9, "expected"),
    "x is 5": (5, "'null' or 'nan'"),
    "x = null": (4, "is null"),
    "x = nan": (4, "is nan"),
    "x in 1": (5, r"'\('"),
    "x in (1, 2": (10, r"'\)'"),
    "x in (1 2)": (8, r"'\)'"),
    "x like 5": (7, "a pattern"),
    "x like '%a'": (7, r"write \\%"),
    "x like 'a_b%'": (7, r"write \\_"),
    "x between 1": (11, "'and'"),
    "x = 'abc": (4, "not closed"),
    '"x = 1': (0, "not closed"),
    "x = 5abc": (4, "not a number"),
    "x = 1.2.3": (7, "'and', 'or' or the end"),
    "x = X'0'": (4, "hexadecimal"),
    "x = X'zz'": (4, "hexadecimal"),
    "x ; 1": (2, "unexpected character ';'"),
    "x = 1 && y = 2": (6, r"character '&' \(write 'and'\)"),
    "x = 1 || y = 2": (6, r"character '\|' \(write 'or'\)"),
    "!(x = 1)": (0, "write 'not'"),
    "x in [1, 2]": (5, r"a list is written \(1, 2\)"),
    "x + 1 = 2": (2, "not a number"),
    "x. = 1": (3, "a column"),
    "a.and = 1": (2, "quoted"),
    "1 = 1": (4, "a column"),
    "x not = 1": (6, "'in', 'like' or 'between'"),
    "5 and x = 1": (2, "a comparison"),
    "x = " + "1" * 5000: (4, "digits"),
    "((" * 60 + "x = 1" + "))" * 60: (100, "nested deeper than 100"),
    "not " * 150 + "x = 1": (605, "nested deeper than 100"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_an_error_states_the_position_and_what_was_expected(text):
    position, reason = REFUSED[text]
    with pytest.raises(InvalidExpression, match=reason) as error:
        parse(text)
    assert error.value.position == position
    assert f"character {position + 1}:" in str(error.value)
    assert len(str(error.value)) < 300


def test_what_is_no_string_is_refused():
    for other in (None, 5, ["x = 1"]):
        with pytest.raises(InvalidExpression, match="a filter is"):
            as_expression(other)
    with pytest.raises(InvalidExpression, match="characters"):
        parse("x = '" + "a" * 17_000_000 + "'")


def test_an_expression_is_taken_as_it_is():
    assert as_expression(X1) is X1
    assert as_expression("x = 1") == X1


outcomes = counted_outcomes()


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.sampled_from([*"ab1.'\"`()=<>!, %\\_xX-+e\n\x00é", " and ", " not ", " in ", " is null", "x = 1"]),
        max_size=40,
    ).map("".join)
)
@example("x = 1")
@example("x =")
def test_any_string_gives_an_expression_or_one_kind_of_error(outcomes, text):
    with outcomes.of("strings", InvalidExpression):
        expression = parse(text)
        assert parse(str(expression)) == expression


@pytest.mark.slow
def test_hostile_strings_are_refused_or_read_in_linear_time():
    size = 200_000
    started = time.process_time()  # of this process alone: the machine may be busy
    parse(f"x in ({', '.join(map(str, range(size // 4)))})")
    parse(" or ".join(["x = 1"] * (size // 20)))
    for text in (
        "'" * size + "x",
        "(" * size,
        "not " * size,
        "1" * size + "x",
        "x = '" + "''" * size,
        "a." * size,
        '"' * (size + 1),  # an even number is a quoted name, which is a filter by itself
    ):
        with pytest.raises(InvalidExpression):
            parse(text)
    assert time.process_time() - started < 10


SAME_IN_PYICEBERG = [
    "x = 1", "x == 1", "x != 1", "x <> 1", "x < 1", "1 < x", "x >= 1.25", "x in (1, 2)", "x in ('a', 'b')",
    "x not in (1, 2)", "x is null", "x is not null", "x is nan", "x is not nan", "x like 'a%'", "x between 1 and 5",
    "x = 1 and y = 2 or z = 3", "x = 1 and (y = 2 or z = 3)", "not (x = 1 and y = 2)", "x = 'it''s'", "a.b > 5",
    '"a b" = 1', "x = true", "true", "false", "x = 1 AND y IS NULL", "x > -5", r"x like 'a\%%'",
]  # fmt: skip


@pytest.mark.parametrize("text", SAME_IN_PYICEBERG)
def test_a_string_means_what_it_means_in_pyiceberg(text):
    peer = pytest.importorskip("pyiceberg.expressions")
    parse_peer = pytest.importorskip("pyiceberg.expressions.parser").parse
    assert _neutral(parse(text)) == _neutral_peer(parse_peer(text), peer)


def _neutral(expression):
    kind = type(expression).__name__
    if isinstance(expression, And | Or):
        return (kind, *map(_neutral, expression.children))
    if isinstance(expression, Not):
        return (kind, _neutral(expression.child))
    if isinstance(expression, AlwaysTrue | AlwaysFalse):
        return (kind,)
    return (kind, expression.term.name, tuple(sorted(expression.literals)))


def _neutral_peer(expression, peer):
    kind = type(expression).__name__
    if isinstance(expression, peer.And | peer.Or):
        sides = [_neutral_peer(side, peer) for side in (expression.left, expression.right)]
        return (kind, *(part for side in sides for part in (side[1:] if side[0] == kind else [side])))
    if isinstance(expression, peer.Not):
        return (kind, _neutral_peer(expression.child, peer))
    if isinstance(expression, peer.AlwaysTrue | peer.AlwaysFalse):
        return (kind,)
    literals = getattr(expression, "literals", None) or [
        one for one in [getattr(expression, "literal", None)] if one is not None
    ]
    return (kind, expression.term.name, tuple(sorted(literal.value for literal in literals)))


@pytest.mark.parametrize(("before", "after"), [(29, 28), (30, 29), (31, 30), (0, 0), (90, 2)])
def test_an_error_shows_thirty_characters_on_each_side(before, after):
    text = "x" * before + "?" + "y" * after
    with pytest.raises(InvalidExpression) as error:
        fail("no", text, before)
    left = "..." * (before > 30) + "x" * min(before, 30)
    right = ("?" + "y" * after)[:30] + "..." * (after + 1 > 30)
    assert str(error.value).endswith(f"character {before + 1}: no: {left}⟨here⟩{right}")


def test_a_literal_is_shown_on_one_line():
    assert shown("a" * 78) == "'" + "a" * 78 + "'"
    assert shown("a" * 79) == "'" + "a" * 76 + "..."

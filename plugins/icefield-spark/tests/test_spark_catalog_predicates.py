"""Filters that Spark pushes, as filters of the kernel: against a plain model of Spark's logic of three values."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from icefield import Schema
from icefield.expressions import bind, row_matches
from icefield.types import DoubleType, IntegerType, NestedField, StringType, TimestampNanoType, UUIDType
from icefield_spark.catalog.predicates import Filters

SCHEMA = Schema(
    NestedField(1, "i", IntegerType()),
    NestedField(2, "d", DoubleType()),
    NestedField(3, "s", StringType()),
    NestedField(4, "u", UUIDType()),
    NestedField(5, "n", TimestampNanoType()),
)
TYPES = {"i": "integer", "d": "double", "s": "string"}
VALUES: dict[str, list[Any]] = {
    "i": [None, -1, 0, 7],
    "d": [None, -math.inf, -0.0, 0.0, 1.5, math.inf, math.nan],
    "s": [None, "", "a", "ab", "b"],
}
ROWS = [{"i": i, "d": d, "s": s} for i in VALUES["i"] for d in VALUES["d"] for s in VALUES["s"]]
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")

Described = dict[str, Any]


def column(name: str) -> Described:
    return {"column": [name]}


def literal(kind: str, value: Any) -> Described:
    texts = {math.inf: "Infinity", -math.inf: "-Infinity"}
    text = None if value is None else "NaN" if value != value else texts.get(value, str(value))
    return {"type": kind, "value": text}


def call(name: str, *arguments: Described) -> Described:
    return {"function": name, "arguments": list(arguments)}


def order(value: Any) -> Any:
    """NaN equals itself and is greater than every number; the zeros are equal."""
    if not isinstance(value, float):
        return value
    return (1, 0.0) if math.isnan(value) else (0, value)


def truth(expression: Described, row: dict[str, Any]) -> Any:
    """What Spark makes of an expression: true, false or None for unknown, or the value of a column."""
    if "column" in expression:
        return row[expression["column"][0]]
    if "type" in expression:
        value = expression["value"]
        return value if value is None else {"integer": int, "double": float, "string": str}[expression["type"]](value)
    name, arguments = expression["function"], [truth(each, row) for each in expression["arguments"]]
    match name:
        case "AND":
            return False if False in arguments else None if None in arguments else True
        case "OR":
            return True if True in arguments else None if None in arguments else False
        case "NOT":
            return None if arguments[0] is None else not arguments[0]
        case "IS_NULL":
            return arguments[0] is None
        case "IS_NOT_NULL":
            return arguments[0] is not None
    left, rest = order(arguments[0]), [order(each) for each in arguments[1:]]
    if name == "<=>":
        return left == rest[0]
    if left is None:
        return None
    if name == "IN":
        return True if left in rest else None if None in rest else False
    if rest[0] is None:
        return None
    if name == "STARTS_WITH":
        return left.startswith(rest[0])
    return {
        "=": left == rest[0],
        "<>": left != rest[0],
        "<": left < rest[0],
        "<=": left <= rest[0],
        ">": left > rest[0],
        ">=": left >= rest[0],
    }[name]


def leaf(choose: random.Random) -> Described:
    name = choose.choice("ids")
    value = lambda: literal(TYPES[name], choose.choice(VALUES[name]))  # noqa: E731
    kind = choose.choice([*COMPARISONS, "mirrored", "IN", "IS_NULL", "IS_NOT_NULL", "STARTS_WITH"])
    if kind == "STARTS_WITH":
        return call(kind, column("s"), literal("string", choose.choice(["", "a", "ab"])))
    if kind in ("IS_NULL", "IS_NOT_NULL"):
        return call(kind, column(name))
    if kind == "IN":
        return call(kind, column(name), *(value() for _ in range(choose.randint(1, 3))))
    if kind == "mirrored":
        return call(choose.choice(COMPARISONS[:-1]), value(), column(name))
    return call(kind, column(name), value())


def tree(choose: random.Random, depth: int) -> Described:
    if depth == 0 or choose.random() < 0.3:
        return leaf(choose)
    kind = choose.choice(["AND", "OR", "NOT"])
    return call(kind, *(tree(choose, depth - 1) for _ in range(1 if kind == "NOT" else 2)))


def kept(expression: Any) -> list[dict[str, Any]]:
    bound = bind(SCHEMA, expression)
    return [row for row in ROWS if row_matches(bound, row)]


def wanted(*predicates: Described) -> list[dict[str, Any]]:
    return [row for row in ROWS if all(truth(each, row) is True for each in predicates)]


def holds(*predicates: Described) -> bool:
    """Check a translation; whether there is an exact one."""
    filters = Filters(SCHEMA)
    right, exact = wanted(*predicates), filters.exact(predicates)
    loose = {id(row) for row in kept(filters.keeping(predicates))}
    lost = [row for row in right if id(row) not in loose]
    assert not lost, (predicates, lost[:3])
    if exact is not None:
        assert list(map(id, kept(exact))) == list(map(id, right)), predicates
    return exact is not None


@pytest.mark.parametrize("name", list("ids"))
@pytest.mark.parametrize("kind", COMPARISONS)
def test_each_comparison_and_its_negation_is_as_in_spark(name: str, kind: str) -> None:
    for value in VALUES[name]:
        for predicate in (
            call(kind, column(name), literal(TYPES[name], value)),
            call("IN", column(name), literal(TYPES[name], value), literal(TYPES[name], VALUES[name][-1])),
        ):
            exact = [holds(predicate), holds(call("NOT", predicate)), holds(call("NOT", call("NOT", predicate)))]
            assert value is None or all(exact)


def test_trees_of_predicates_are_as_in_spark() -> None:
    choose = random.Random(7)
    exact = sum(holds(*(tree(choose, 3) for _ in range(choose.randint(1, 2)))) for _ in range(600))
    assert exact > 100


@pytest.mark.parametrize(
    "predicate",
    [
        call("=", call("%", column("i"), literal("integer", 2)), literal("integer", 0)),
        call("=", column("i"), column("i")),
        call("ENDS_WITH", column("s"), literal("string", "b")),
        call("=", column("_pos"), literal("long", 1)),
        call("=", column("u"), literal("string", "00010203-0405-0607-0809-0A0B0C0D0E0F")),
        call("<", column("n"), literal("long", 1)),
        call("=", column("i"), literal("interval", 1)),
        call("=", column("i"), literal("date", 10**9)),
    ],
)
def test_a_predicate_with_no_equal_keeps_every_row_and_is_never_exact(predicate: Described) -> None:
    filters = Filters(SCHEMA)
    for each in (predicate, call("NOT", predicate), call("OR", predicate, call("IS_NULL", column("i")))):
        assert filters.exact([each]) is None
        assert len(kept(filters.keeping([each]))) == len(ROWS)
    of_both = call("AND", predicate, call("=", column("i"), literal("integer", 7)))
    assert filters.exact([of_both]) is None
    assert kept(filters.keeping([of_both])) == wanted(call("=", column("i"), literal("integer", 7)))

"""Filters in the slow and obvious way: random rows, random predicates, and a row-by-row evaluation in Python.

Rows are dicts by field name of internal values; None is null and a struct is a dict. ``naive`` answers True, False or
None (unknown), so it shares nothing with the kernel's evaluators.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from icefield.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
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
)
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.partitioning.transforms import parse_transform
from icefield.schema import Schema
from icefield.types import NestedField, StructType, parse_type
from icefield.types.arrow.types import to_arrow_field

NAN = math.nan
DAY = 86_400_000_000
INT32 = (-(2**31), 2**31 - 1)
INT64 = (-(2**63), 2**63 - 1)

DECIMALS = [Decimal(text) for text in ("-9999999.99", "-0.05", "0.00", "0.01", "10.50", "10.65", "9999999.99")]
TIMES = [0, 1, DAY // 2, DAY - 1]
INSTANTS = [-DAY - 1, -DAY, -1, 0, 1, DAY - 1, DAY, 400 * DAY, 1_512_122_400_000_000]
TEXTS = ["", "a", "ab", "abc", "abcd", "abd", "b", "é", "日本", "a\U0001f600", "\uffff", "Z", "a%", "a_b'"]
BYTES = [b"", b"\x00", b"ab", b"abc", b"abcd", b"\x7f", b"\x80", b"\xff\xff"]
UUIDS = [bytes([first]) + bytes(14) + bytes([last]) for first in (0, 0x7F, 0x80, 0xFF) for last in (0, 0x80, 0xFF)]

POOLS: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int": [*INT32, INT32[0] + 1, INT32[1] - 1, *range(-12, 13), 100],
    "long": [*INT64, INT64[0] + 1, INT64[1] - 1, *range(-12, 13), 2**40],
    "float": [NAN, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.25, 3.4028234663852886e38],
    "double": [NAN, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.25, 0.1, 1e300],
    "decimal(9,2)": DECIMALS,
    "date": [-719162, -366, -365, -32, -31, -1, 0, 1, 30, 31, 364, 365, 17501, 2932896],
    "time": TIMES,
    "timestamp": INSTANTS,
    "timestamptz": INSTANTS,
    "timestamp_ns": [1000 * instant for instant in INSTANTS[:7]] + [-1, 1],
    "string": TEXTS,
    "uuid": UUIDS,
    "fixed[3]": [b"\x00\x00\x00", b"abc", b"abd", b"\x80\x00\x00", b"\xff\xff\xff"],
    "binary": BYTES,
}
"""A few values of each type: the ends of its range, neighbours of transform boundaries, and enough collisions."""

TYPES = list(POOLS)


def column_name(kind: str) -> str:
    """The name of the column of a type in ``SCHEMA``."""
    return "c_" + "".join(character if character.isalnum() else "_" for character in kind)


COLUMNS = {column_name(kind): kind for kind in TYPES}
_FLAT = [NestedField(i, name, parse_type(kind)) for i, (name, kind) in enumerate(COLUMNS.items(), 1)]
SCHEMA = Schema(
    *_FLAT,
    NestedField(
        50,
        "s",
        StructType(
            NestedField(51, "i", parse_type("int")),
            NestedField(52, "d", parse_type("double")),
            NestedField(53, "deep", StructType(NestedField(54, "t", parse_type("string"), required=True))),
        ),
    ),
)
"""A column of each type, and fields inside optional structs."""

NESTED = {"s.i": "int", "s.d": "double", "s.deep.t": "string"}
ALL_NAMES = COLUMNS | NESTED


TRANSFORMS = ["identity", "bucket[1]", "bucket[3]", "truncate[1]", "truncate[3]", "truncate[10]"]
TRANSFORMS += ["year", "month", "day", "hour", "void"]
TRANSFORM_CASES = [
    (text, kind) for text in TRANSFORMS for kind in TYPES if parse_transform(text).can_transform(parse_type(kind))
]
"""Each transform with each type that it takes."""


def spec_of(*columns: tuple[str, str]) -> PartitionSpec:
    """A spec of ``SCHEMA`` from pairs of column and transform; its fields are p0, p1, ..."""
    fields = (
        PartitionField(SCHEMA.find_field(name).field_id, 1000 + i, text, f"p{i}")
        for i, (name, text) in enumerate(columns)
    )
    return PartitionSpec(*fields, spec_id=1)


def one_of(kind: str) -> st.SearchStrategy[Any]:
    """Values of a type, never null."""
    return st.sampled_from(POOLS[kind])


def cells(kind: str) -> st.SearchStrategy[Any]:
    """Values of a type or null."""
    return st.one_of(st.none(), one_of(kind))


def literals(kind: str) -> st.SearchStrategy[Any]:
    """Values of a type that a predicate may hold."""
    return st.sampled_from([value for value in POOLS[kind] if value == value])


@lru_cache
def predicates(name: str, kind: str) -> st.SearchStrategy[BooleanExpression]:
    """A predicate on a column of a type."""
    value, some = literals(kind), st.lists(literals(kind), max_size=6)
    found = [
        st.sampled_from([IsNull(name), NotNull(name), IsNaN(name), NotNaN(name)]),
        *(
            st.builds(maker, st.just(name), value)
            for maker in (EqualTo, NotEqualTo, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual)
        ),
        st.builds(In, st.just(name), some),
        st.builds(NotIn, st.just(name), some),
    ]
    if kind == "string":
        found += [st.builds(StartsWith, st.just(name), value), st.builds(NotStartsWith, st.just(name), value)]
    return st.one_of(found)


@st.composite
def expressions(draw: st.DrawFn, columns: dict[str, str], leaves: int = 5) -> BooleanExpression:
    """Predicates on some columns, combined by and, or and not."""
    names = sorted(columns)
    parts: list[BooleanExpression] = []
    for _ in range(draw(st.integers(1, leaves))):
        name = draw(st.sampled_from(names))
        shape = draw(st.integers(0, 19))
        parts.append(
            AlwaysTrue() if shape == 18 else AlwaysFalse() if shape == 19 else draw(predicates(name, columns[name]))
        )
    while len(parts) > 1:
        shape, right, left = draw(st.integers(0, 7)), parts.pop(), parts.pop()
        joined = And(left, right) if shape % 2 else Or(left, right)
        # The new part goes to the left or to the right end, so that trees of both shapes occur.
        parts.insert(0 if shape < 4 else len(parts), Not(joined) if shape in (2, 5) else joined)
    return Not(parts[0]) if draw(st.integers(0, 5)) == 0 else parts[0]


def rows(columns: dict[str, str], max_size: int = 12) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows with flat columns."""
    return st.lists(st.fixed_dictionaries({name: cells(kind) for name, kind in columns.items()}), max_size=max_size)


def nested_rows(columns: dict[str, str], max_size: int = 8) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows with flat columns and the struct ``s``."""
    deep = st.one_of(st.none(), st.fixed_dictionaries({"t": one_of("string")}))
    struct = st.one_of(st.none(), st.fixed_dictionaries({"i": cells("int"), "d": cells("double"), "deep": deep}))
    flat = {name: cells(kind) for name, kind in columns.items()}
    return st.lists(st.fixed_dictionaries({**flat, "s": struct}), max_size=max_size)


def to_batch(found: list[dict[str, Any]], schema: Schema = SCHEMA) -> pa.RecordBatch:
    """The rows as Arrow data; columns that the rows lack are left out."""
    names = found[0].keys() if found else [field.name for field in schema.fields]
    fields = [to_arrow_field(field) for field in schema.fields if field.name in names]
    arrays = [pa.array([row[field.name] for row in found], field.type) for field in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def value_at(row: dict[str, Any], path: tuple[str, ...]) -> Any:
    """The value at a path; null below null."""
    found: Any = row
    for name in path:
        found = None if found is None else found[name]
    return found


def naive(expression: BooleanExpression, row: dict[str, Any], nan_is_greatest: bool = False) -> bool | None:
    """Evaluate an expression on a row: true, false or unknown. Literals are internal values of the column's type."""
    match expression:
        case AlwaysTrue():
            return True
        case AlwaysFalse():
            return False
        case Not():
            found = naive(expression.child, row, nan_is_greatest)
            return None if found is None else not found
        case And():
            return _kleene([naive(child, row, nan_is_greatest) for child in expression.children], False)
        case Or():
            return _kleene([naive(child, row, nan_is_greatest) for child in expression.children], True)
        case BoundPredicate():
            values = expression.value if expression.op.is_set else (expression.value,)
            return naive_test(expression.op, value_at(row, expression.path), values, nan_is_greatest)
    path = tuple(expression.term.name.split("."))
    return naive_test(expression.op, value_at(row, path), expression.literals, nan_is_greatest)


def _kleene(found: list[bool | None], settled: bool) -> bool | None:
    if settled in found:
        return settled
    return None if None in found else not settled


def naive_test(op: Op, value: Any, literals: tuple[Any, ...], nan_is_greatest: bool = False) -> bool | None:
    """One test of one value."""
    is_nan = isinstance(value, float) and math.isnan(value)
    if op in (Op.IS_NULL, Op.NOT_NULL):
        return (value is None) is (op is Op.IS_NULL)
    if op in (Op.IS_NAN, Op.NOT_NAN):
        return is_nan is (op is Op.IS_NAN)
    if op.is_set and not literals:
        return op is Op.NOT_IN
    if value is None:
        return None
    match op:
        case Op.IN:
            return value in literals
        case Op.NOT_IN:
            return value not in literals
        case Op.STARTS_WITH:
            return value.startswith(literals[0])
        case Op.NOT_STARTS_WITH:
            return not value.startswith(literals[0])
    literal = literals[0]
    if isinstance(value, str):
        value, literal = value.encode(), literal.encode()
    if is_nan and op in (Op.LT, Op.LT_EQ, Op.GT, Op.GT_EQ):
        # NaN is neither less nor greater, and a negation is the opposite comparison: not (x < 5) is x >= 5.
        return op in (Op.GT, Op.GT_EQ) if nan_is_greatest else None
    return {
        Op.EQ: value == literal,
        Op.NOT_EQ: value != literal,
        Op.LT: value < literal,
        Op.LT_EQ: value <= literal,
        Op.GT: value > literal,
        Op.GT_EQ: value >= literal,
    }[op]

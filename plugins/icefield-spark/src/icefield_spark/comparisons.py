"""Comparisons of columns in the text of a condition, for sessions that keep Spark's plans at a server.

Only comparisons that Spark is certain to read the same way are used: a column, an operator, and a literal of the
column's type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final

from pyspark.sql import types as spark
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from icefield_spark.catalog.predicates import Described

_UNCERTAIN: Final = ("\\", '"', "--", "/*", "|>", "{")
"""Signs that Spark may read otherwise: by its settings, in comments, and in pipes of queries."""

_SIGNS: Final[dict[type[exp.Expr], str]] = {exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_BITS: Final[dict[type[spark.DataType], int]] = {spark.IntegerType: 31, spark.LongType: 63}
_DIGITS: Final = re.compile(r"[0-9]{1,19}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True)
class Side:
    """A table or source under its alias, with its columns."""

    alias: str
    columns: spark.StructType


def is_certain(text: str) -> bool:
    """Whether a text has no character that Spark may read differently."""
    return not any(sign in text for sign in _UNCERTAIN)


def conjuncts_in(condition: str) -> list[exp.Expr] | None:
    """The conjuncts of a condition; None if the condition cannot be parsed reliably."""
    try:
        tree = parse_one(f"SELECT 1 WHERE {condition}", read="spark") if is_certain(condition) else None
    except (SqlglotError, RecursionError):
        return None
    if tree is None or {name for name, value in tree.args.items() if value} != {"expressions", "where"}:
        return None
    return list(conjuncts(tree.args["where"].this))


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a condition that are joined by AND."""
    left = [condition]
    while left:
        node = left.pop()
        if isinstance(node, exp.And):
            left += [node.expression, node.this]
        elif isinstance(node, exp.Paren):
            left.append(node.this)
        else:
            yield node


def compared(node: exp.Expr, table: Side, *, is_alone: bool = True) -> Described | None:
    """A comparison of a column of a table with a literal; None for other conditions.

    ``is_alone``: there are no columns of other relations, so a column needs no alias before it.
    """
    is_negated = isinstance(node, exp.Not)
    inner = node.this if is_negated else node
    if isinstance(inner, exp.Is):
        column = _column(inner.this, table, is_alone)
        if column is None or not isinstance(inner.expression, exp.Null):
            return None
        return {"function": "IS_NOT_NULL" if is_negated else "IS_NULL", "arguments": [{"column": [column.name]}]}
    sign = _SIGNS.get(type(node))
    column = None if sign is None else _column(node.this, table, is_alone)
    literal = None if column is None else _literal(column.dataType, node.expression)
    if column is None or literal is None:
        return None
    return {"function": sign, "arguments": [{"column": [column.name]}, literal]}


def equal(node: exp.Expr, table: Side, source: Side) -> tuple[str, str] | None:
    """The columns of a table and of a source that a condition calls equal; None for other conditions."""
    if not isinstance(node, exp.EQ):
        return None
    for left, right in ((node.this, node.expression), (node.expression, node.this)):
        mine, other = _column(left, table, False), _column(right, source, False)
        if mine is not None and other is not None:
            return mine.name, other.name
    return None


def _column(node: exp.Expr, side: Side, is_alone: bool) -> spark.StructField | None:
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    before = [part.name for part in node.parts[:-1]]
    if before != [side.alias] and (before or not is_alone):
        return None
    found = [field for field in side.columns.fields if field.name == node.name]
    return found[0] if len(found) == 1 else None


def _literal(kind: spark.DataType, node: exp.Expr) -> Described | None:
    """A literal of a column's own type, which Spark compares without a cast that depends on settings."""
    if isinstance(kind, spark.BooleanType):
        return {"type": "boolean", "value": str(node.this).lower()} if isinstance(node, exp.Boolean) else None
    if isinstance(kind, spark.DateType):
        text = _text(node.this) if type(node) is exp.Cast and node.to.this == exp.DataType.Type.DATE else None
        try:
            days = None if text is None or not _DATE.fullmatch(text) else date.fromisoformat(text).toordinal()
        except ValueError:
            return None
        return None if days is None else {"type": "date", "value": str(days - date(1970, 1, 1).toordinal())}
    if kind == spark.StringType():
        text = _text(node)
        return None if text is None else {"type": "string", "value": text}
    sign, number = ("-", node.this) if isinstance(node, exp.Neg) else ("", node)
    if type(kind) not in _BITS or not isinstance(number, exp.Literal) or number.is_string:
        return None
    if not _DIGITS.fullmatch(number.this) or int(number.this) >= 1 << _BITS[type(kind)]:
        return None
    return {"type": "long", "value": f"{sign}{number.this}"}


def _text(node: exp.Expr) -> str | None:
    return node.this if isinstance(node, exp.Literal) and node.is_string and "'" not in node.this else None

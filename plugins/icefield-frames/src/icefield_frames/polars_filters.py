"""Expressions of Polars as filters of Iceberg, by the structure that Polars serializes to JSON.

The structure is not stable between versions of Polars: a form that is not known is not translated.
"""

from __future__ import annotations

import json
import re
import warnings
from decimal import Decimal
from io import BytesIO
from typing import Any, Final

import pyarrow as pa
from icefield.errors import InvalidExpression
from icefield.expressions import BooleanExpression
from icefield.schema import Schema

from icefield_frames.filters import (
    ALL,
    MIRRORED,
    NONE,
    UNKNOWN,
    Comparison,
    Path,
    Translated,
    Translator,
    check_depth,
    filter_of,
    joined,
)
from icefield_frames.libraries import library

_COMPARISONS: Final[dict[str, Comparison]] = {
    "Eq": "==",
    "NotEq": "!=",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
}
_BOUNDS: Final[dict[str, tuple[Comparison, Comparison]]] = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}
_INTEGER: Final = re.compile("U?Int(8|16|32|64)")
_UNITS: Final = {"Milliseconds": "ms", "Microseconds": "us", "Nanoseconds": "ns"}
_UNKNOWN_FORMS: Final = (ValueError, LookupError, TypeError, ArithmeticError, RecursionError, pa.ArrowException)


def translated(predicate: Any, translator: Translator) -> Translated:
    """The filter for an expression, as far as there is one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that JSON is not stable
            node = json.loads(predicate.meta.serialize(format="json"))
        return _translated(node, translator, negated=False)
    except _UNKNOWN_FORMS:
        return UNKNOWN
    except Exception as error:
        if type(error).__module__.startswith("polars"):  # Polars cannot serialize it, such as a Python function
            return UNKNOWN
        raise


def from_polars(expression: Any, schema: Schema) -> BooleanExpression:
    """The filter of a table that an expression stands for. Raises ``InvalidExpression`` if there is none."""
    if not hasattr(expression, "meta"):
        raise InvalidExpression(
            f"a filter is an expression of Polars, such as pl.col('id') > 1, not a {type(expression).__name__}"
        )
    found = translated(expression, Translator(schema, schema, nan_is_greatest=True))
    return filter_of(found, expression, expression.meta.root_names, schema)


def _translated(node: Any, translator: Translator, *, negated: bool, depth: int = 0) -> Translated:
    if not check_depth(depth):
        return UNKNOWN
    try:
        return _known(node, translator, negated=negated, depth=depth)
    except _UNKNOWN_FORMS:
        return UNKNOWN


def _known(node: Any, translator: Translator, *, negated: bool, depth: int) -> Translated:
    match node:
        case {"Column": _}:
            return translator.flag(_path(node), negated=negated)
        case {"Literal": {"Scalar": {"Boolean": bool(value)}}}:
            return NONE if value is negated else ALL
        case {
            "BinaryExpr": {"left": left, "op": "And" | "LogicalAnd" | "Or" | "LogicalOr" as operator, "right": right}
        }:
            parts = [_translated(each, translator, negated=negated, depth=depth + 1) for each in (left, right)]
            return joined(parts, every=operator.endswith("And") is not negated)
        case {"BinaryExpr": {"left": left, "op": operator, "right": right}}:
            if operator not in _COMPARISONS:
                return UNKNOWN
            if _is_constant(left):
                return translator.compare(
                    MIRRORED[_COMPARISONS[operator]], _path(right), _literal(left), negated=negated
                )
            return translator.compare(_COMPARISONS[operator], _path(left), _literal(right), negated=negated)
        case {"Function": {"input": [first, *others], "function": {"Boolean": function}}}:
            return _boolean(function, first, others, translator, negated=negated, depth=depth)
        case {"Function": {"input": [first, prefix], "function": {"StringExpr": "StartsWith"}}}:
            return translator.starts_with(_path(first), _string(prefix), negated=negated)
    return UNKNOWN


def _boolean(
    function: Any, first: Any, others: list[Any], translator: Translator, *, negated: bool, depth: int
) -> Translated:
    match function, others:
        case "Not", []:
            return _translated(first, translator, negated=not negated, depth=depth + 1)
        case "IsNull", []:
            return translator.is_null(_path(first), negated=negated)
        case "IsNotNull", []:
            return translator.is_null(_path(first), negated=not negated)
        case "IsNan", []:
            return translator.is_nan(_path(first), negated=negated)
        case "IsNotNan", []:
            return translator.is_nan(_path(first), negated=not negated)
        case {"IsIn": {"nulls_equal": False}}, [values]:
            return translator.among(_path(first), _values(values), negated=negated)
        case {"IsBetween": {"closed": closed}}, [low, high]:
            path, operators = _path(first), _BOUNDS[closed]
            ends = zip(operators, (low, high), strict=True)
            parts = [translator.compare(each, path, _literal(end), negated=negated) for each, end in ends]
            return joined(parts, every=not negated)
    return UNKNOWN


def _path(node: Any) -> Path:
    """The names of a column, or of a field in a struct. Raises ``LookupError`` for other expressions."""
    match node:
        case {"Column": str(name)}:
            return (name,)
        case {"Function": {"input": [inner], "function": {"StructExpr": {"FieldByName": str(name)}}}}:
            return (*_path(inner), name)
    raise LookupError("an expression that is no column")


def _literal(node: Any) -> pa.Scalar | None:
    """The value of a literal. Raises ``LookupError`` for other expressions."""
    match node:
        case {"Literal": {"Dyn": {"Int": int(value)} | {"Float": float(value)} | {"Str": str(value)}}}:
            return pa.scalar(value)
        case {"Literal": {"Scalar": {"Datetime": [int(value), unit, None]}}}:
            return pa.scalar(value, pa.timestamp(_UNITS[unit]))
        case {"Literal": {"Scalar": {"Datetime": [int(value), unit, str(zone) | {"inner": str(zone)}]}}}:
            return pa.scalar(value, pa.timestamp(_UNITS[unit], zone))
        case {"Literal": {"Scalar": {"Date": int(days)}}}:
            return pa.scalar(days, pa.int32()).cast(pa.date32())
        case {"Literal": {"Scalar": {"Time": int(value)}}}:
            return pa.scalar(value, pa.int64()).cast(pa.time64("ns"))
        case {"Literal": {"Scalar": {"Decimal": [int(value), int(), int(scale)]}}}:
            return pa.scalar(Decimal(value).scaleb(-scale))
        case {"Literal": {"Scalar": {"Boolean": bool(value)} | {"String": str(value)}}}:
            return pa.scalar(value)
        case {"Literal": {"Scalar": {"Binary": list(value)}}}:
            return pa.scalar(bytes(value))
        case {"Literal": {"Scalar": {"Float64": float(value)}}}:
            return pa.scalar(value)
        case {"Literal": {"Scalar": dict(held)}} if len(held) == 1 and _INTEGER.fullmatch(next(iter(held))):
            return pa.scalar(int(*held.values()))
        case {"Literal": {"Scalar": {"Null": _}}}:
            return pa.scalar(None)
        case {"Literal": {"Scalar": {"Float32": float(value)}}}:
            return pa.scalar(value, pa.float32())
        case {"Alias": [inner, str()]}:
            return _literal(inner)
    if not _is_constant(node):
        raise LookupError("an expression that is no literal")
    polars = library("polars", "filters")
    expression = polars.Expr.deserialize(BytesIO(json.dumps(node).encode()), format="json")
    return polars.select(expression).to_series().to_arrow()[0]


def _is_constant(node: Any) -> bool:
    """Whether an expression is a literal, or a date, a time or a cast that Polars computes from literals alone."""
    match node:
        case {"Literal": _}:
            return True
        case {"Alias": [inner, str()]} | {"Cast": {"expr": inner}}:
            return _is_constant(inner)
        case {"Function": {"input": [*inputs], "function": {"TemporalExpr": _} | {"StringExpr": {"Strptime": _}}}}:
            return all(map(_is_constant, inputs))
    return False


def _string(node: Any) -> Any:
    found = _literal(node)
    return None if found is None else found.as_py()


def _values(node: Any) -> list[pa.Scalar | None]:
    """The members of a list of literals, which Polars holds as an Arrow stream. None stands for null."""
    match node:
        case {"Literal": {"Scalar": {"List": list(content)}}} | {"Literal": {"Series": list(content)}}:
            with pa.ipc.open_stream(bytes(content)) as stream:
                column = stream.read_all().column(0).combine_chunks()
            if pa.types.is_large_list(column.type) and len(column) == 1:  # a series that was imploded
                column = column[0].values
            return [value if value.is_valid else None for value in column]
    raise LookupError("an expression that is no list of literals")

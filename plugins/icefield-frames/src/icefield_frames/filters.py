"""Filters of Iceberg made from the comparisons of other libraries.

Libraries differ in NaN: Arrow orders it nowhere, while Polars, DuckDB and DataFusion take it for the greatest number.
A comparison is translated only if the filter selects exactly the same rows; callers apply all others to the rows.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from icefield.errors import InvalidExpression
from icefield.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    StartsWith,
    bind,
)
from icefield.schema import Schema
from icefield.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

Path: TypeAlias = tuple[str, ...]
Comparison: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">="]

OPPOSITES: Final[dict[Comparison, Comparison]] = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED: Final[dict[Comparison, Comparison]] = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

_CLASSES: Final[dict[Comparison, Any]] = {
    "==": EqualTo,
    "!=": NotEqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
}
_BESIDE_NAN: Final[dict[Comparison, Callable[[Path], BooleanExpression]]] = {
    "==": IsNaN,
    "!=": lambda path: And(NotNaN(path), NotNull(path)),
    "<": lambda path: And(NotNaN(path), NotNull(path)),
    "<=": NotNull,
    ">": lambda _: AlwaysFalse(),
    ">=": IsNaN,
}
"""The comparisons with NaN as the greatest number."""

MOST_DEPTH: Final = 100
"""The maximum depth of an expression that is translated."""


@dataclass(frozen=True, slots=True)
class Translated:
    """A filter that passes all rows of another library's expression; None passes every row.

    ``is_exact``: it passes no others.
    """

    row_filter: BooleanExpression | None
    is_exact: bool

    def __and__(self, other: Translated) -> Translated:
        is_exact = self.is_exact and other.is_exact
        if self.row_filter is None or other.row_filter is None:
            return Translated(other.row_filter if self.row_filter is None else self.row_filter, is_exact)
        return Translated(And(self.row_filter, other.row_filter), is_exact)

    def __or__(self, other: Translated) -> Translated:
        if self.row_filter is None or other.row_filter is None:
            return UNKNOWN
        return Translated(Or(self.row_filter, other.row_filter), self.is_exact and other.is_exact)


UNKNOWN: Final = Translated(None, False)
"""An expression that no filter stands for."""

ALL: Final = Translated(None, True)
"""The filter of all rows."""

NONE: Final = Translated(AlwaysFalse(), True)
"""The filter of no row."""


@dataclass(frozen=True, slots=True)
class Translator:
    """Translates predicates on the columns of a scan.

    ``columns`` is the scan's result, ``table`` the schema that its filter refers to. ``nan_is_greatest``: whether the
    library takes NaN for equal to itself and greater than all other numbers.

    Each method takes ``negated``: the rows for which the predicate is false, and not null.
    """

    columns: Schema
    table: Schema
    nan_is_greatest: bool

    def flag(self, path: Path, *, negated: bool) -> Translated:
        """A column of booleans by itself."""
        if not isinstance(self._type(path), BooleanType):
            return UNKNOWN
        return _exact(EqualTo(path, not negated))

    def is_null(self, path: Path, *, negated: bool) -> Translated:
        """Whether a value is null."""
        if self._type(path) is None:
            return UNKNOWN
        return _exact(NotNull(path) if negated else IsNull(path))

    def is_nan(self, path: Path, *, negated: bool) -> Translated:
        """Whether a value is NaN; null for null."""
        if not isinstance(self._type(path), FloatType | DoubleType):
            return UNKNOWN
        return _exact(And(NotNaN(path), NotNull(path)) if negated else IsNaN(path))

    def has_nan(self, path: Path) -> bool:
        """Whether a column may hold NaN."""
        return isinstance(self._type(path), FloatType | DoubleType)

    def compare(self, operator: Comparison, path: Path, value: pa.Scalar | None, *, negated: bool) -> Translated:
        """A comparison with a literal."""
        kind = self._type(path)
        used = OPPOSITES[operator] if negated else operator
        if self.nan_is_greatest and isinstance(kind, FloatType | DoubleType) and is_nan(value):
            return _exact(_BESIDE_NAN[used](path))
        if kind is not None and value is not None and pa.types.is_null(value.type):
            return NONE
        literal = None if kind is None or value is None else literal_of(kind, value)
        if literal is None:
            return UNKNOWN
        found: BooleanExpression = _CLASSES[used](path, literal)
        if isinstance(kind, FloatType | DoubleType):
            passes = used in (">", ">=") if self.nan_is_greatest else negated and used not in ("==", "!=")
            found = Or(found, IsNaN(path)) if passes else found
        return _exact(found)

    def among(self, path: Path, values: Iterable[pa.Scalar | None], *, negated: bool, null: bool = False) -> Translated:
        """Membership in literals, none of them null. ``null``: whether the predicate is false, not null, for null."""
        kind, values = self._type(path), list(values)
        if kind is None:
            return UNKNOWN
        if isinstance(kind, FloatType | DoubleType):
            return self._among_floats(path, values, negated=negated, null=null)
        literals = [None if value is None else literal_of(kind, value) for value in values]
        if None in literals:
            return UNKNOWN
        if not literals and (not negated or null):
            return ALL if negated else NONE
        if not negated:
            return _exact(In(path, literals))
        outside: BooleanExpression = NotIn(path, literals)
        return _exact(Or(outside, IsNull(path)) if null else And(outside, NotNull(path)))

    def _among_floats(self, path: Path, values: list[pa.Scalar | None], *, negated: bool, null: bool) -> Translated:
        """Membership in floats, as the comparison with each of them."""
        if not values or None in values or not self.nan_is_greatest:  # Arrow tells -0.0 from 0.0
            return UNKNOWN
        found = joined([self.compare("==", path, value, negated=negated) for value in values], every=negated)
        return joined([found, self.is_null(path, negated=False)], every=False) if negated and null else found

    def starts_with(self, path: Path, prefix: Any, *, negated: bool) -> Translated:
        """Whether a string starts with a literal."""
        if not isinstance(self._type(path), StringType) or not isinstance(prefix, str) or not prefix:
            return UNKNOWN
        if negated:
            return _exact(And(NotStartsWith(path, prefix), NotNull(path)))
        return _exact(StartsWith(path, prefix))

    def _type(self, path: Path) -> IcebergType | None:
        """The type of a column that has the same values in the result and in the table; None for all others."""
        try:
            found, own = (type_at(schema, path) for schema in (self.columns, self.table))
        except LookupError:
            return None
        return found if found == own else None


def filter_of(
    found: Translated, expression: Any, names: Callable[[], Iterable[str]], schema: Schema
) -> BooleanExpression:
    """The filter of a table that an expression stands for.

    ``names`` gives the columns of the expression. Raises ``InvalidExpression`` for a column that the table lacks, and
    for an expression that is no filter.
    """
    if found.is_exact:
        return AlwaysTrue() if found.row_filter is None else found.row_filter
    for name in names():
        bind(schema, IsNull((name,)))  # names the columns that there are, if this is none
    raise InvalidExpression(
        f"this expression is no filter of a table: {expression!s:.200}; compare columns with literals of their types "
        "by ==, !=, <, <=, >, >=, or by is_in, or filter the rows that a scan gives"
    )


def joined(parts: Sequence[Translated], *, every: bool) -> Translated:
    """The conjunction of some filters, or their disjunction."""
    return reduce(Translated.__and__ if every else Translated.__or__, parts)


def check_depth(depth: int) -> bool:
    """Whether an expression at this depth is still translated."""
    return depth <= MOST_DEPTH


def is_nan(value: pa.Scalar | None) -> bool:
    """Whether a value is NaN."""
    return value is not None and pa.types.is_floating(value.type) and value.is_valid and math.isnan(value.as_py())


def type_at(schema: Schema, path: Path) -> IcebergType:
    """The type at a path of names. Raises ``LookupError``."""
    fields = schema.fields
    for depth, name in enumerate(path):
        column = next((each for each in fields if each.name == name), None)
        if column is None:
            raise LookupError(name)
        kind: IcebergType = column.field_type
        if depth + 1 < len(path):
            if not isinstance(kind, StructType):
                raise LookupError(name)
            fields = kind.fields
    return kind


def literal_of(kind: IcebergType, value: pa.Scalar) -> Any:
    """The literal of a column's type that equals a value; None if there is none, or if kinds of values differ."""
    given = value.type
    if not value.is_valid:
        return None
    try:
        match kind:
            case IntegerType() | LongType() if pa.types.is_integer(given):
                bits = 31 if isinstance(kind, IntegerType) else 63
                number = value.as_py()
                return number if -(1 << bits) <= number < 1 << bits else None
            case FloatType() | DoubleType() if pa.types.is_integer(given) or pa.types.is_floating(given):
                return _float(value.as_py(), single=isinstance(kind, FloatType))
            case DecimalType() if pa.types.is_decimal(given) or pa.types.is_integer(given):
                return _decimal(Decimal(value.as_py()), kind)
            case StringType() if pa.types.is_string(given) or pa.types.is_large_string(given):
                return value.as_py()
            case StringType() if pa.types.is_string_view(given):
                return value.as_py()
            case BinaryType() if pa.types.is_binary(given) or pa.types.is_large_binary(given):
                return value.as_py()
            case BooleanType() if pa.types.is_boolean(given):
                return value.as_py()
            case DateType() if pa.types.is_date(given):
                return value.as_py()
            case TimeType() if pa.types.is_time(given):
                return value.cast(pa.time64("us")).as_py()  # raises where digits would be lost
            case TimestampType() | TimestamptzType() if pa.types.is_timestamp(given):
                return _instant(value, zoned=isinstance(kind, TimestamptzType))
    except (ValueError, OverflowError, ArithmeticError, pa.ArrowException):  # a value that Python cannot hold
        return None
    return None


def _exact(row_filter: BooleanExpression) -> Translated:
    return Translated(row_filter, True)


def _float(value: float, *, single: bool) -> float | None:
    number = float(value)
    if number != value:  # NaN, or an integer that no float equals
        return None
    with np.errstate(over="ignore"):
        return number if not single or float(np.float32(number)) == number else None


def _decimal(value: Decimal, kind: DecimalType) -> Decimal | None:
    fits = value.is_finite() and value.adjusted() < kind.precision - kind.scale
    return value if fits and value == round(value, kind.scale) else None


def _instant(value: pa.Scalar, *, zoned: bool) -> str | None:
    # Libraries differ in the unit by which they compare two units.
    if (value.type.tz is not None) != zoned or value.type.unit != "us":
        return None
    instant = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value.value)
    return instant.isoformat() + ("+00:00" if zoned else "")

"""Which conjuncts of a query say something about one table, as filters of Iceberg that keep every row they keep.

The query keeps its own conditions. A filter here may let more rows through than the condition that it came from, and
never fewer: what compares other than Iceberg does is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from math import isfinite
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from icefield import Schema
from icefield import types as iceberg
from icefield.expressions import (
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
    NotNull,
    Or,
    StartsWith,
    conjunction,
    disjunction,
)
from sqlglot import exp

from icefield_spark.sql.calls import UNITS, Call, call_of
from icefield_spark.sql.transform_filters import Buckets, filter_of_time, filter_of_truncated

_COMPARISONS: dict[type[exp.Expression], Any] = {
    exp.EQ: EqualTo,
    exp.NEQ: NotEqualTo,
    exp.GT: GreaterThan,
    exp.GTE: GreaterThanOrEqual,
    exp.LT: LessThan,
    exp.LTE: LessThanOrEqual,
}
_OPPOSITE = {
    EqualTo: NotEqualTo,
    NotEqualTo: EqualTo,
    GreaterThan: LessThanOrEqual,
    LessThanOrEqual: GreaterThan,
    LessThan: GreaterThanOrEqual,
    GreaterThanOrEqual: LessThan,
}
_MIRRORED = {
    GreaterThan: LessThan,
    LessThan: GreaterThan,
    GreaterThanOrEqual: LessThanOrEqual,
    LessThanOrEqual: GreaterThanOrEqual,
}
_WHOLE: dict[type[iceberg.IcebergType], int] = {iceberg.IntegerType: 31, iceberg.LongType: 63}
_FLOATS = (iceberg.FloatType, iceberg.DoubleType)
_INSTANTS = {exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ}
_WALL_CLOCKS = {exp.DataType.Type.TIMESTAMPNTZ}
_SUFFIXED = {exp.DataType.Type.BIGINT: 63, exp.DataType.Type.SMALLINT: 15, exp.DataType.Type.TINYINT: 7}
"""The types of whole numbers with a suffix, with their bits."""
_MOST_VALUES = 1000
_UNDERSTOOD = frozenset({"this", "expression", "expressions", "low", "high", "table"})

# Literals have at most 38 digits, and so has a scale. The context of the caller rounds at 28.
_EXACT_NUMBERS = Context(prec=100)
_DECIMAL = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?)?")
"""The forms that Python and Spark read alike: Python takes weeks, commas, underscores and the digits of all scripts."""

# From here on calendars and zones of Java and Python agree.
_FIRST_YEAR = 1900

ColumnOf = Callable[[exp.Column], str | None]
"""The name of the table's column that an expression means; None when it may mean another."""


def conjuncts(condition: exp.Expression | None) -> Iterator[exp.Expression]:
    """The parts of a condition all of which must hold."""
    if isinstance(condition, exp.And):
        yield from conjuncts(condition.this)
        yield from conjuncts(condition.expression)
    elif isinstance(condition, exp.Paren):
        yield from conjuncts(condition.this)
    elif condition is not None:
        yield condition


class Pushdown:
    """Turns conditions into filters on the columns of one table."""

    def __init__(self, schema: Schema, column_of: ColumnOf, zone: str, catalog: str = "") -> None:
        """``catalog``: the name that may stand before those of Iceberg's functions."""
        self._catalog = catalog
        self._kinds = {field.name: field.field_type for field in schema.fields}
        self._column_of = column_of
        self._zone = zone

    def filter(self, condition: exp.Expression, *, may_be_absent: bool = False) -> BooleanExpression | None:
        """The filter that keeps at least the rows of a condition; None where nothing is known.

        ``may_be_absent``: an outer join puts nulls in place of rows, so that a filter must not ask for nulls.
        """
        return self._made(condition, False, may_be_absent)

    def is_whole(self, condition: exp.Expression, *, negated: bool = False) -> bool:
        """Whether the filter of a condition, or of its opposite, leaves out no part of it."""
        if isinstance(condition, exp.Paren):
            return self.is_whole(condition.this, negated=negated)
        if isinstance(condition, exp.Not):
            return self.is_whole(condition.this, negated=not negated)
        if isinstance(condition, exp.And | exp.Or):
            sides = (condition.this, condition.expression)
            return all(self.is_whole(side, negated=negated) for side in sides)
        if isinstance(condition, exp.Between) and None in self._bounds(condition, negated):
            return False
        return self._made(condition, negated, False) is not None

    def _bounds(self, node: exp.Between, negated: bool) -> tuple[BooleanExpression | None, BooleanExpression | None]:
        """What each end of a range says."""
        return (
            self._comparison(GreaterThanOrEqual, node.this, node.args["low"], negated),
            self._comparison(LessThanOrEqual, node.this, node.args["high"], negated),
        )

    def buckets(self, condition: exp.Expression) -> Buckets | None:
        """The buckets that a condition asks for; None where it asks for none."""
        if isinstance(condition, exp.Paren):
            return self.buckets(condition.this)
        if isinstance(condition, exp.EQ):
            sides = (condition.this, condition.expression)
            called, *given = sides if isinstance(sides[0], exp.Dot) else sides[::-1]
        elif isinstance(condition, exp.In) and condition.expressions:
            called, *given = condition.this, *condition.expressions
        else:
            return None
        call = self._call(called)
        if call is None or call.name != "bucket" or len(call.arguments) != 2:
            return None
        name, count, among = self._name(call.arguments[1]), _whole(call.arguments[0]), [_whole(each) for each in given]
        if name is None or count is None or not 0 < count < 1 << 31 or None in among:
            return None
        return Buckets((name,), count, frozenset(each for each in among if each is not None))

    def _call(self, node: exp.Expression) -> Call | None:
        return call_of(node, self._catalog)

    def _made(self, node: exp.Expression, negated: bool, strict: bool) -> BooleanExpression | None:
        if any(value for name, value in node.args.items() if name not in _UNDERSTOOD):
            return None  # NOT LIKE is a LIKE with an argument more
        if isinstance(node, exp.Paren):
            return self._made(node.this, negated, strict)
        if isinstance(node, exp.Not):
            return self._made(node.this, not negated, strict)
        if isinstance(node, exp.And | exp.Or):
            sides = [self._made(side, negated, strict) for side in (node.this, node.expression)]
            known = [side for side in sides if side is not None]
            if isinstance(node, exp.And) is not negated:
                return And(known[0], known[1]) if len(known) == 2 else next(iter(known), None)
            return Or(known[0], known[1]) if len(known) == 2 else None
        if isinstance(node, exp.Is):
            return self._null(node, negated, strict)
        if isinstance(node, exp.Column):
            name = self._name(node)
            if name is None or not isinstance(self._kinds[name], iceberg.BooleanType):
                return None
            return EqualTo((name,), not negated)
        if isinstance(node, exp.Between):
            known = [side for side in self._bounds(node, negated) if side is not None]
            if negated:
                return Or(known[0], known[1]) if len(known) == 2 else None
            return conjunction(known) if known else None
        if isinstance(node, exp.In):
            return self._in(node, negated)
        if isinstance(node, exp.Like) and not negated:
            return self._like(node)
        if isinstance(node, exp.StartsWith) and not negated:
            return self._starts(node.this, node.expression)
        if isinstance(node, exp.NullSafeEQ) and not negated:
            return self._comparison(EqualTo, node.this, node.expression, negated)
        kind = _COMPARISONS.get(type(node))
        return None if kind is None else self._comparison(kind, node.this, node.expression, negated)

    def _comparison(
        self, kind: Any, left: exp.Expression, right: exp.Expression, negated: bool
    ) -> BooleanExpression | None:
        if isinstance(right, exp.Column | exp.Dot):
            left, right, kind = right, left, _MIRRORED.get(kind, kind)
        call = self._call(left)
        if call is not None:
            return None if negated else self._transformed(kind, call, right)
        name = self._name(left)
        if name is None:
            return None
        found = self._value(name, right)
        if found is None:
            return None
        if negated:
            kind = _OPPOSITE[kind]
        made: BooleanExpression = kind((name,), found)
        # For Spark NaN is greater than every number, for Iceberg it compares to none.
        if isinstance(self._kinds[name], _FLOATS) and kind in (GreaterThan, GreaterThanOrEqual):
            return Or(made, IsNaN((name,)))
        return made

    def _transformed(self, kind: Any, call: Call, right: exp.Expression) -> BooleanExpression | None:
        """What the comparison of a transform of a column with a literal says of the column."""
        arguments = call.arguments
        name = self._name(arguments[-1]) if arguments else None
        if name is None:
            return None
        column = self._kinds[name]
        if call.name in UNITS and len(arguments) == 1:
            value = _date(right) if call.name == "days" else _whole(right)
            return None if value is None else filter_of_time(kind, (name,), column, UNITS[call.name], value)
        width = _whole(arguments[0])
        if call.name != "truncate" or len(arguments) != 2 or width is None:
            return None
        value = self._value(name, right)
        return None if value is None else filter_of_truncated(kind, (name,), column, width, value)

    def _null(self, node: exp.Is, negated: bool, strict: bool) -> BooleanExpression | None:
        name = self._name(node.this)
        if name is None or not isinstance(node.expression, exp.Null):
            return None
        if negated:
            return NotNull((name,))
        return None if strict else IsNull((name,))

    def _in(self, node: exp.In, negated: bool) -> BooleanExpression | None:
        call = self._call(node.this)
        if call is not None:
            found = [self._transformed(EqualTo, call, each) for each in node.expressions]
            known = [each for each in found if each is not None]
            return disjunction(known) if known and len(known) == len(found) and not negated else None
        name = self._name(node.this)
        if name is None or not node.expressions or len(node.expressions) > _MOST_VALUES:
            return None
        given = [each for each in node.expressions if not isinstance(each, exp.Null)]
        if negated and len(given) < len(node.expressions):
            return None  # holds of no row; the query finds that out
        values = [self._value(name, each) for each in given]
        if not values or None in values:
            return None
        return NotIn((name,), values) if negated else In((name,), values)

    def _like(self, node: exp.Like) -> BooleanExpression | None:
        name, pattern = self._name(node.this), node.expression
        if name is None or not isinstance(self._kinds[name], iceberg.StringType):
            return None
        if not isinstance(pattern, exp.Literal) or not pattern.is_string or isinstance(node.parent, exp.Escape):
            return None
        prefix = pattern.this[:-1]
        if not prefix or not pattern.this.endswith("%") or any(each in prefix for each in "%_\\"):
            return None
        return StartsWith((name,), prefix)

    def _starts(self, left: exp.Expression, prefix: exp.Expression) -> BooleanExpression | None:
        name = self._name(left)
        if name is None or not isinstance(self._kinds[name], iceberg.StringType):
            return None
        is_prefix = isinstance(prefix, exp.Literal) and prefix.is_string and prefix.this
        return StartsWith((name,), prefix.this) if is_prefix else None

    def _name(self, node: exp.Expression) -> str | None:
        return self._column_of(node) if isinstance(node, exp.Column) else None

    def _value(self, name: str, node: exp.Expression) -> Any:
        """A literal as a value of the column's type; None where Spark compares in another type."""
        kind = self._kinds[name]
        if isinstance(kind, iceberg.StringType):
            return node.this if isinstance(node, exp.Literal) and node.is_string else None
        if isinstance(kind, iceberg.BooleanType):
            return bool(node.this) if isinstance(node, exp.Boolean) else None
        if isinstance(kind, iceberg.DateType):
            return _date(node)
        if isinstance(kind, iceberg.TimestampType | iceberg.TimestamptzType):
            return self._time(node, with_zone=isinstance(kind, iceberg.TimestamptzType))
        if isinstance(kind, iceberg.DoubleType) and (double := _double(node)) is not None:
            return double
        number = _number(node)
        if number is None:
            return None
        if type(kind) in _WHOLE:
            bound = 1 << _WHOLE[type(kind)]
            return int(number) if number == int(number) and -bound <= number < bound else None
        if isinstance(kind, iceberg.DecimalType):
            scaled = _EXACT_NUMBERS.scaleb(number, kind.scale)
            return number if scaled == int(scaled) and abs(scaled) < 10**kind.precision else None
        if isinstance(kind, _FLOATS) and number == int(number) and 0 < abs(number) < 1 << 24:
            return float(number)  # a whole number that both types hold exactly
        return None

    def _time(self, node: exp.Expression, *, with_zone: bool) -> Any:
        text = _text(node, (_INSTANTS if with_zone else _WALL_CLOCKS))
        if text is None or not _TIME.fullmatch(text):
            return None
        try:
            wall = datetime.fromisoformat(text)
        except ValueError:
            return None
        if wall.year < _FIRST_YEAR or wall.year > 2037:
            return None
        if not with_zone:
            return wall
        try:
            zone = ZoneInfo(self._zone)
        except (ZoneInfoNotFoundError, ValueError):
            return None
        offsets = {(wall + timedelta(hours=each)).replace(tzinfo=zone).utcoffset() for each in (-25, 0, 25)}
        # Near a change of the clocks a wall clock may mean two times, or none.
        return wall.replace(tzinfo=zone).astimezone(UTC) if len(offsets) == 1 else None


def _number(node: exp.Expression) -> Decimal | None:
    if isinstance(node, exp.Neg):
        found = _number(node.this)
        return None if found is None else -found
    if isinstance(node, exp.TryCast) and node.to.this in _SUFFIXED:
        found = _number(node.this)  # 1L, which looks like a cast here; a cast of 1.5 changes it
        is_held = found is not None and found == int(found) and abs(found) < 1 << _SUFFIXED[node.to.this]
        return found if is_held else None
    if isinstance(node, exp.TryCast) and node.to.this == exp.DataType.Type.DECIMAL:
        return _decimal(node)  # 1.50BD
    if not isinstance(node, exp.Literal) or node.is_string or "e" in node.this.lower() or len(node.this) > 38:
        return None
    try:
        return Decimal(node.this)
    except InvalidOperation:
        return None


def _whole(node: exp.Expression) -> int | None:
    """The whole number that a literal is."""
    found = _number(node)
    return int(found) if found is not None and found == int(found) else None


def _decimal(node: exp.TryCast) -> Decimal | None:
    """The number of a string that is cast to a decimal type which holds it as it is, with as many places."""
    text, sizes = _text(node.this, set()), [each.name for each in node.to.expressions]
    if text is None or not _DECIMAL.fullmatch(text):
        return None
    try:
        found = Decimal(text)
        precision, scale = map(int, sizes)
    except (InvalidOperation, ValueError):
        return None
    _, digits, exponent = found.as_tuple()
    return found if exponent == -scale and len(digits) <= precision else None


def _double(node: exp.Expression) -> float | None:
    """A double precision literal, as 2.5D; none that is zero, of which there are two."""
    if isinstance(node, exp.Neg):
        found = _double(node.this)
        return None if found is None else -found
    if not isinstance(node, exp.TryCast) or node.to.this != exp.DataType.Type.DOUBLE:
        return None
    if not isinstance(node.this, exp.Literal) or node.this.is_string:
        return None
    found = float(node.this.this)
    return found if found and isfinite(found) else None


def _date(node: exp.Expression) -> date | None:
    text = _text(node, {exp.DataType.Type.DATE})
    if text is None or not _DATE.fullmatch(text):
        return None
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if found.year >= _FIRST_YEAR else None


def _text(node: exp.Expression, kinds: set[Any]) -> str | None:
    """The string of a literal, alone or as one of these types."""
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast) and node.to.this in kinds:
        node = node.this
    return node.this if isinstance(node, exp.Literal) and node.is_string else None

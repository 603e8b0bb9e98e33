"""Analysis of conditions on the rows of a table: filters on its columns, and columns that equal a source's columns.

Spark's optimizer does the analysis: it gets the condition over relations without rows, resolves names, folds constants
and pushes the parts down. Spark Connect keeps plans at the server: there the text is parsed, and only its simplest
forms are understood.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from icefield import Table
from icefield.errors import UnsupportedFeature
from icefield.expressions import BooleanExpression
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from icefield_spark.catalog.predicates import NOT_EXACT, Described, Filters
from icefield_spark.comparisons import Side, compared, conjuncts_in, equal
from icefield_spark.jvm import is_connected, items, jvm_class
from icefield_spark.plans import column_in, conjuncts
from icefield_spark.running import activate
from icefield_spark.types import all_nullable, to_spark_schema

Expression = str | Column
"""An expression of Spark's SQL as text, or as a column of Spark's."""

_MOST_NODES: Final = 10_000
_FALSE: Final[Described] = {"type": "boolean", "value": "false"}
_FUNCTIONS: Final = {
    "And": "AND",
    "Or": "OR",
    "Not": "NOT",
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "In": "IN",
    "IsNull": "IS_NULL",
    "IsNotNull": "IS_NOT_NULL",
    "StartsWith": "STARTS_WITH",
}
"""The names of predicates by the names of Spark's classes."""

_SEPARATOR: Final = "\0"


@dataclass
class Said:
    """Facts about every row of a table that satisfies a condition."""

    predicates: list[Described] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    """Columns of the table, each with the column of the source that it equals."""

    is_whole: bool = True
    """Whether the predicates are all of the condition."""

    def concern(self, table: Table) -> BooleanExpression:
        """A filter that holds for all these rows, and perhaps for other rows."""
        return Filters(table.schema()).keeping(self.predicates)

    def exact(self, table: Table) -> BooleanExpression | None:
        """The filter that holds for exactly these rows; None if no filter certainly does."""
        return Filters(table.schema()).exact(self.predicates) if self.is_whole else None


def exact_filter(session: SparkSession, condition: Expression, table: Table) -> BooleanExpression:
    """The filter that matches exactly the rows for which a condition holds. Raises ``UnsupportedFeature``."""
    side = Side(table.name()[-1], all_nullable(to_spark_schema(table.schema())))
    found = said_of(session, condition, side).exact(table)
    if found is None:
        raise UnsupportedFeature(NOT_EXACT)
    return found


def expression(session: SparkSession, given: Expression) -> Column:
    """An expression of the caller as a column; its variables take their values from a session."""
    if not isinstance(given, str):
        return given
    if not is_connected(session):
        activate(session)
    return f.expr(f"({given}\n)")  # so that it is one expression, without a name


def said_of(session: SparkSession, condition: Expression, table: Side, source: Side | None = None) -> Said:
    """The predicates of a condition on a table's rows, or of a join condition of the table and a source."""
    if is_connected(session):
        return _said_by_text(condition, table, source)
    frame = _without_rows(session, table)
    ids = [_ids(frame)]
    if source is None:
        frame = frame.where(expression(session, condition))
    else:
        other = _without_rows(session, source)
        ids.append(_ids(other))
        frame = frame.join(other, expression(session, condition), "inner")
    return _PlanReader(ids).read(frame._jdf.queryExecution().optimizedPlan())


def _without_rows(session: SparkSession, side: Side) -> DataFrame:
    """A relation with a side's columns and with rows unknown to the optimizer."""
    columns = spark.StructType([spark.StructField(each.name, each.dataType, True) for each in side.columns.fields])
    kind = jvm_class(session, "org.apache.spark.sql.types.DataType").fromJson(columns.json())
    rows = session._jsparkSession.createDataFrame(session.sparkContext._jsc.emptyRDD(), kind)
    return DataFrame(rows, session).alias(side.alias)


def _ids(frame: DataFrame) -> dict[int, str]:
    return {each.exprId().id(): each.name() for each in items(frame._jdf.queryExecution().analyzed().output())}


class _TooLarge(Exception):
    """The condition has too many parts to be analyzed."""


class _PlanReader:
    """Reads from an optimized plan the conditions that hold for every row of its result."""

    def __init__(self, ids: Sequence[dict[int, str]]) -> None:
        """``ids``: the columns of the table, and of the source if any, by Spark's ids for them."""
        self._table, self._source = ids[0], ids[1] if len(ids) > 1 else {}
        self._nodes = 0

    def read(self, plan: Any) -> Said:
        """The predicates in the conditions of a plan."""
        found = Said()
        try:
            self._walk(plan, found)
        except _TooLarge:
            return Said(is_whole=False)
        return found

    def _walk(self, plan: Any, found: Said) -> None:
        kind = plan.nodeName()
        children = items(plan.children())
        if kind == "Filter":
            self._take(plan.condition(), found)
        elif kind == "Join":
            joins = str(plan.joinType().sql())
            if joins == "INNER" and plan.condition().isDefined():
                self._take(plan.condition().get(), found)
            if not self._source or joins != "INNER":
                found.is_whole = False
            if joins != "INNER":
                children = children[:1] if joins in ("LEFT SEMI", "LEFT ANTI") else []
        elif kind == "LocalRelation" and plan.data().isEmpty():
            found.predicates.append(_FALSE)
        elif kind not in ("Project", "LogicalRDD"):
            found.is_whole, children = False, []
        for child in children:
            self._walk(child, found)

    def _take(self, condition: Any, found: Said) -> None:
        for each in conjuncts(condition):
            sides = {self._side(id_) for id_ in _references(each)}
            if sides <= {0}:
                described = self._described(each)
                found.predicates.append(described)
                continue
            found.is_whole = False
            if each.nodeName() == "EqualTo" and sides == {0, 1}:
                names = [self._column(part) for part in (each.left(), each.right())]
                if names[0] is not None and names[1] is not None:
                    (_, mine), (_, other) = sorted((names[0], names[1]))
                    found.pairs.append((mine, other))

    def _side(self, id_: int) -> int:
        return 0 if id_ in self._table else 1 if id_ in self._source else 2

    def _column(self, node: Any) -> tuple[int, str] | None:
        """The side and the column of an expression that is a column, or its cast to a wider integer."""
        column = column_in(node)
        if column is None:
            return None
        id_ = column.exprId().id()
        side = self._side(id_)
        return None if side > 1 else (side, (self._table, self._source)[side][id_])

    def _described(self, node: Any) -> Described:
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise _TooLarge
        kind = node.nodeName()
        if kind == "Literal":
            return _literal(node.dataType(), node.value())
        if kind == "InSet":
            values = [_literal(node.child().dataType(), each) for each in _values(node.hset())]
            return {"function": "IN", "arguments": [self._described(node.child()), *values]}
        if kind == "AttributeReference":
            name = self._table.get(node.exprId().id())
            return {} if name is None else {"column": [name]}
        if kind == "GetStructField":
            path = self._described(node.child()).get("column")
            name = node.childSchema().apply(node.ordinal()).name() if path else ""
            return {"column": [*path, name]} if path else {}
        if kind not in _FUNCTIONS:
            return {}
        return {"function": _FUNCTIONS[kind], "arguments": [self._described(each) for each in items(node.children())]}


def _references(node: Any) -> list[int]:
    return [each.exprId().id() for each in items(node.references().toSeq())]


def _literal(kind: Any, value: Any) -> Described:
    name = str(kind.typeName())
    if value is None:
        return {"type": name, "value": None}
    if isinstance(value, bytes | bytearray):
        return {"type": name, "bytes": base64.b64encode(value).decode()}
    text = repr(value) if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
    return {"type": name, "value": text}


def _values(found: Any) -> list[Any]:
    """The values of a set of Spark's.

    They are fetched as strings in one call, unless a null, a binary value or a separator in a value prevents it.
    """
    texts = str(found.mkString(_SEPARATOR)).split(_SEPARATOR)
    plain = len(texts) == found.size() and not any(each == "null" or each.startswith("[B@") for each in texts)
    return texts if plain else items(found.toSeq())


# -- Spark Connect ----------------------------------------------------------------------------------------------------


def _said_by_text(condition: Expression, table: Side, source: Side | None) -> Said:
    """The facts in the text of a condition: ``column op literal``, equal columns of both sides, and AND."""
    parts = conjuncts_in(condition) if isinstance(condition, str) else None
    if parts is None:
        return Said(is_whole=False)
    found = Said()
    for part in parts:
        described = compared(part, table, is_alone=source is None)
        if described is not None:
            found.predicates.append(described)
            continue
        found.is_whole = False
        pair = None if source is None else equal(part, table, source)
        if pair is not None:
            found.pairs.append(pair)
    return found

"""Frames made of tables' frames, planned anew with the filters and columns that were added since.

Spark's optimizer says what a query asks of each table: it is given the query with a relation without rows in the place
of each table's frame, and pushes filters and columns down to it, across joins and whatever else the query is made of.
"""

# See docs/decisions/0145.

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final
from uuid import uuid4

from icefield import Schema
from icefield.errors import UnsupportedFeature
from icefield.expressions import AlwaysTrue, BooleanExpression, Or, conjunction
from icefield.scan import TableScan
from icefield.toolkit import LruCache
from icefield.types import METADATA_COLUMNS
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from icefield_spark.explaining import Explanation, explained, explained_together
from icefield_spark.jvm import is_connected, items, jvm_class, seq
from icefield_spark.planned import planned
from icefield_spark.plans import CATALYST, under
from icefield_spark.roads.choosing import Road
from icefield_spark.sql.pushdown import Pushdown, conjuncts

_MOST_KEPT: Final = 100
"""Tables' frames that a session remembers, the latest."""

_TAG = "icefield"
_COLUMN = re.compile(r"icefield_(\d+)_(\d+)")
_BY_PLACE = frozenset({"Sample"})
"""What takes rows by where they come in a partition."""


@dataclass(frozen=True)
class Origin:
    """What the frame of a table was planned by."""

    identifier: str
    scan: TableScan
    road: Road | None


class Origins:
    """The latest frames of tables, by a key that Spark keeps with their plan."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._by_key: LruCache[str, Origin] = LruCache(_MOST_KEPT)

    def marked(self, frame: DataFrame, origin: Origin) -> DataFrame:
        """A frame of the same rows that is recognized in the plans of the frames that are made of it."""
        if is_connected(self._spark):
            return frame
        key = str(uuid4())
        # A step of its own: Spark copies others for the two sides of a join, and leaves what is attached to them.
        found = frame.select("*")
        _analyzed(found).setTagValue(_tag(self._spark), key)
        self._by_key.put(key, origin)
        return found

    def of(self, plan: Any) -> Origin | None:
        """The origin of a plan that is the frame of a table as a whole."""
        key = plan.getTagValue(_tag(self._spark))
        return self._by_key.get(key.get()) if key.isDefined() else None


@dataclass
class _Asked:
    """What a query asks of one table's frame."""

    filters: list[BooleanExpression] = field(default_factory=list)
    """A filter for each time that the frame is read."""
    columns: set[int] = field(default_factory=set)

    @property
    def row_filter(self) -> BooleanExpression:
        if not self.filters or any(isinstance(each, AlwaysTrue) for each in self.filters):
            return AlwaysTrue()
        return reduce(Or, self.filters)


def optimized(spark: SparkSession, frame: DataFrame, origins: Origins) -> DataFrame:
    """A frame of the same rows, whose tables are planned with what it asks of them; itself where nothing is won.

    Raises ``UnsupportedFeature`` through Spark Connect.
    """
    if is_connected(spark):
        raise UnsupportedFeature(
            "ice.optimize reads the plan of a frame, which Spark Connect keeps at the server: give ice.table the "
            "filter and the columns, or write the query with ice.sql"
        )
    plan = frame._jdf.queryExecution().withCachedData()
    found = [(node, origin) for node, origin in _origins(plan, origins) if not node.output().isEmpty()]
    if not found or not _is_repeatable(spark, plan):
        return frame
    asked = _asked(spark, frame, plan, found, origins)
    made: list[Any] = []
    explanations: list[Explanation] = []
    for (node, origin), wanted in zip(found, asked, strict=True):
        scan, kept = _narrowed(origin.scan, node, wanted) if wanted.filters else (origin.scan, None)
        replacement = None
        if kept is not None and scan != origin.scan:
            again = planned(spark, scan, kept, road=origin.road)
            replacement = _as_before(spark, node, _analyzed(again.frame), set(kept))
            if replacement is not None:
                explanations.append(explained(origin.identifier, scan, again))
        made.append(replacement)
    if not explanations:
        return frame
    places = iter(made)
    result = _frame_of(spark, frame, _replaced(spark, plan, origins, lambda node: next(places) or node))
    explained_together(result, explanations)
    return result


# -- the plan ---------------------------------------------------------------------------------------------------------


def _origins(plan: Any, origins: Origins) -> Iterator[tuple[Any, Origin]]:
    """The tables' frames in a plan, from left to right."""
    origin = origins.of(plan)
    if origin is not None:
        yield plan, origin
        return
    for child in items(plan.children()):
        yield from _origins(child, origins)


def _replaced(spark: SparkSession, plan: Any, origins: Origins, by: Callable[[Any], Any]) -> Any:
    """A plan with others in the places of the tables' frames, from left to right."""
    if origins.of(plan) is not None:
        return plan if plan.output().isEmpty() else by(plan)
    children = items(plan.children())
    made = [_replaced(spark, child, origins, by) for child in children]
    if all(new is old for new, old in zip(made, children, strict=True)):
        return plan
    return plan.withNewChildren(seq(spark, made))


def _is_repeatable(spark: SparkSession, plan: Any) -> bool:
    """Whether a plan means the same rows now and later, and wherever its tables' rows come in their partitions."""
    now = jvm_class(spark, f"{CATALYST}.trees.TreePattern").CURRENT_LIKE()
    return bool(plan.deterministic()) and not plan.containsPattern(now) and not _has_any(plan, _BY_PLACE)


def _has_any(plan: Any, names: frozenset[str]) -> bool:
    return plan.nodeName() in names or any(_has_any(child, names) for child in items(plan.children()))


# -- what is asked ----------------------------------------------------------------------------------------------------


def _asked(
    spark: SparkSession, frame: DataFrame, plan: Any, found: list[tuple[Any, Origin]], origins: Origins
) -> list[_Asked]:
    """What Spark's optimizer asks of each of the tables' frames."""
    places = iter(range(len(found)))
    empty = _replaced(spark, plan, origins, lambda node: _without_rows(spark, node, next(places)))
    best = _frame_of(spark, frame, empty)._jdf.queryExecution().optimizedPlan()
    settings = jvm_class(spark, "org.apache.spark.sql.internal.SQLConf").get()
    zone = str(settings.sessionLocalTimeZone())  # literals are shown in it
    asked = [_Asked() for _ in found]
    filters = [_Filters(origin.scan, [each.name() for each in items(node.output())], zone) for node, origin in found]
    for leaf, above in _leaves(best, ()):
        place = int(_COLUMN.fullmatch(items(leaf.output())[0].name())[1])  # type: ignore[index]
        conditions = above[:1] if above and above[0].nodeName() == "Filter" else ()
        asked[place].filters.append(conjunction([filters[place].of(each.condition().sql()) for each in conditions]))
        users = above[: len(conditions) + 1]
        narrows = len(users) > len(conditions) and users[-1].nodeName() in ("Project", "Aggregate")
        columns = [name for each in users for name in _names(each.references())] if narrows else _names(leaf.output())
        asked[place].columns |= {int(match[2]) for match in map(_COLUMN.fullmatch, columns) if match}
    return asked


def _without_rows(spark: SparkSession, node: Any, place: int) -> Any:
    """A relation in the place of a table's frame, with its columns, about which the optimizer knows nothing more."""
    schema = StructType.fromJson(json.loads(node.schema().json()))
    for at, each in enumerate(schema.fields):
        each.name = f"icefield_{place}_{at}"
    kind = jvm_class(spark, "org.apache.spark.sql.types.DataType").fromJson(StructType(schema.fields).json())
    rows = spark._jsparkSession.createDataFrame(spark.sparkContext._jsc.emptyRDD(), kind)
    relation = rows.queryExecution().analyzed()
    return under(spark, node, relation, items(relation.output()))


def _leaves(plan: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The relations in the places of tables' frames, each with the two steps above it, the nearest first."""
    children = items(plan.children())
    output = [] if children else items(plan.output())
    if output and _COLUMN.fullmatch(output[0].name()):
        yield plan, above
    for child in children:
        yield from _leaves(child, (plan, *above[:1]))
    for query in items(plan.subqueries()):
        yield from _leaves(query, ())


class _Filters:
    """Turns conditions on the columns of a relation that stands for a table's frame into filters of its scan."""

    def __init__(self, scan: TableScan, names: list[str], zone: str) -> None:
        self._names = names
        self._known = _plain_names(scan.schema, scan.case_sensitive)
        self._pushdown = Pushdown(scan.schema, self._column, zone)

    def of(self, condition: str) -> BooleanExpression:
        """The filter that keeps at least the rows of a condition."""
        try:
            tree = parse_one(f"SELECT 1 WHERE {condition}", read="spark").args["where"].this
        except (SqlglotError, KeyError):
            return AlwaysTrue()
        made = [self._pushdown.filter(each) for each in conjuncts(tree)]
        return conjunction([each for each in made if each is not None])

    def _column(self, column: exp.Column) -> str | None:
        match = _COLUMN.fullmatch(column.name) if len(column.parts) == 1 else None
        name = None if match is None else self._names[int(match[2])]
        return name if name in self._known else None


def _plain_names(schema: Schema, case_sensitive: bool) -> set[str]:
    """The columns that a filter can name, which by the scan's rules may be none of those that differ in case only."""
    names = [each.name for each in schema.fields]
    folded = names if case_sensitive else [name.lower() for name in names]
    counts = Counter(folded)
    return {name for name, plain in zip(names, folded, strict=True) if counts[plain] == 1}


# -- planned anew -----------------------------------------------------------------------------------------------------


def _narrowed(scan: TableScan, node: Any, asked: _Asked) -> tuple[TableScan, list[str]]:
    """A scan of the rows and columns that are asked for, and the names of these columns."""
    names = _names(node.output())
    kept = [name for at, name in enumerate(names) if at in asked.columns] or names[:1]
    if not isinstance(asked.row_filter, AlwaysTrue):
        scan = scan.filter(asked.row_filter)
    whole = scan.selected_fields == ("*",) or set(scan.selected_fields) == set(names)
    if not whole or len(kept) == len(names):
        return scan, names
    fields: list[Any] = [name if name in METADATA_COLUMNS else (name,) for name in kept]
    return replace(scan, selected_fields=tuple(fields)), kept


def _as_before(spark: SparkSession, node: Any, plan: Any, kept: set[str]) -> Any | None:
    """A plan under the columns of the one that it replaces; None where it cannot be called the same.

    Nobody looks at a column that is not kept: it holds a constant.
    """
    literals = jvm_class(spark, f"{CATALYST}.expressions.Literal")
    by_name = {each.name(): each for each in items(plan.output())}
    values = []
    for old in items(node.output()):
        new = by_name.get(old.name())
        if old.name() not in kept:
            new = literals(None, old.dataType()) if old.nullable() else literals.default(old.dataType())
        elif new is None or not new.dataType().equals(old.dataType()) or (new.nullable() and not old.nullable()):
            return None
        values.append(new)
    return under(spark, node, plan, values)


# -- the JVM ----------------------------------------------------------------------------------------------------------


def _tag(spark: SparkSession) -> Any:
    return jvm_class(spark, f"{CATALYST}.trees.TreeNodeTag")(_TAG)


def _analyzed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()


def _frame_of(spark: SparkSession, like: DataFrame, plan: Any) -> DataFrame:
    """The frame of a plan, in the session of another frame."""
    dataset = jvm_class(spark, like._jdf.getClass().getName())
    return DataFrame(dataset.ofRows(like._jdf.sparkSession(), plan), like.sparkSession)


def _names(attributes: Any) -> list[str]:
    return [each.name() for each in items(attributes.toSeq())]

"""Prunes files of a table by the keys of a merge's source.

Spark tells a scan nothing about the rows that it is joined with. If a session prunes by values found at run time, it
computes the source a second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from icefield import Schema
from pyspark.sql import DataFrame, SparkSession

from icefield_spark.catalog.scans import PlannedScan, java_scan_of, scan_of
from icefield_spark.jvm import array, items, jvm_class, seq
from icefield_spark.merge_keys import key_columns
from icefield_spark.pinning import pinned
from icefield_spark.plans import CATALYST, column_in, conjuncts, under
from icefield_spark.running import frame_of_plan

_PREDICATE: Final = "org.apache.spark.sql.connector.expressions.filter.Predicate"
_KEYS: Final = "icefield_keys"
"""The name under which Spark observes the keys of a source, in the job that computes it."""

_INNER: Final = frozenset({"Inner", "RightOuter"})
"""The joins that drop rows of the table, on the left, without a match in the source."""


@dataclass(frozen=True)
class _Join:
    """The join of a table and the source of a merge, in the plan of its changes."""

    plan: Any
    scan: Any
    """The table's scan, in the JVM."""
    pairs: Sequence[tuple[str, int]]
    """Columns of the table, each with the index of the source column that equals it in matched rows."""


@contextmanager
def with_source_pinned(
    spark: SparkSession, changes: DataFrame, scan: PlannedScan, schema: Schema
) -> Iterator[tuple[DataFrame, bool]]:
    """The changes of a merge with its source computed once; the scan of the table prunes files by its keys.

    Also yields whether the commit must refuse rows of the table with several matches in the source. Spark itself checks
    this in each task, and would shuffle the table for the check. ``schema``: the table's. The changes stay unchanged if
    their plan compares no column of the table.
    """
    plan = changes._jdf.queryExecution().analyzed()
    join = _join_of(plan, scan, {each.name for each in schema.fields})
    if join is None:
        yield changes, False
        return
    source = join.plan.right()
    named = frame_of_plan(spark, source)
    named = named.toDF(*(f"c{at}" for at in range(len(named.columns))))
    keys = key_columns(schema, named, [(mine, f"c{at}") for mine, at in join.pairs])
    if keys is not None:
        named = named.observe(_KEYS, *keys.ends())
    with pinned(named) as held:
        if held is None:
            yield changes, False
            return
        ends = None if keys is None else _observed(named)
        scan.narrow([] if keys is None or ends is None else keys.bounds(ends, held))
        join.scan.filter(array(spark, _PREDICATE, []))  # it forgets the plan that it had
        kept = held._jdf.queryExecution().analyzed()
        there = under(spark, source, kept, items(kept.output()))
        hint, made = join.plan.hint(), jvm_class(spark, f"{CATALYST}.plans.logical.Join")
        free = jvm_class(spark, f"{CATALYST}.plans.logical.JoinHint").NONE()
        joined = made(join.plan.left(), there, join.plan.joinType(), join.plan.condition(), free)
        yield frame_of_plan(spark, _replaced(spark, plan, join.plan, joined)), bool(hint.leftHint().isDefined())


def _observed(frame: DataFrame) -> list[Any] | None:
    """The values that Spark observed in the rows of a frame; None if it observed none."""
    found = frame._jdf.queryExecution().observedMetrics().get(_KEYS)
    return [found.get().get(at) for at in range(found.get().size())] if found.isDefined() else None


def _join_of(plan: Any, scan: PlannedScan, columns: set[str]) -> _Join | None:
    if plan.nodeName() == "Join" and plan.joinType().toString() in _INNER and plan.condition().isDefined():
        read = _without_filters(plan.left())
        if scan_of(read) is scan:
            left = {each.exprId().id(): each.name() for each in items(plan.left().output())}
            right = {each.exprId().id(): at for at, each in enumerate(items(plan.right().output()))}
            pairs = [*_equalities(plan.condition().get(), left, right, columns)]
            return _Join(plan, java_scan_of(read), pairs) if pairs else None
    joins = (_join_of(child, scan, columns) for child in items(plan.children()))
    return next((each for each in joins if each is not None), None)


def _without_filters(plan: Any) -> Any:
    while plan.nodeName() in ("Project", "Filter"):
        plan = plan.child()
    return plan


def _equalities(
    condition: Any, left: dict[int, str], right: dict[int, int], columns: set[str]
) -> Iterator[tuple[str, int]]:
    for each in conjuncts(condition):
        if each.nodeName() != "EqualTo":
            continue
        sides = [column_in(each.left()), column_in(each.right())]
        for mine, other in (sides, sides[::-1]):
            if mine is None or other is None:
                continue
            name, place = left.get(mine.exprId().id(), ""), right.get(other.exprId().id())
            if name in columns and place is not None:
                yield name, place


def _replaced(spark: SparkSession, plan: Any, old: Any, new: Any) -> Any:
    """A plan with one of its parts replaced by another plan."""
    if plan == old:
        return new
    children = items(plan.children())
    made = [_replaced(spark, child, old, new) for child in children]
    if all(after is before for after, before in zip(made, children, strict=True)):
        return plan
    return plan.withNewChildren(seq(spark, made))

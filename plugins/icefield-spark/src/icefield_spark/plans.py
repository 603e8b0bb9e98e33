"""Parts of the plans that Spark makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql import SparkSession

from icefield_spark.jvm import items, jvm_class, seq

CATALYST: Final = "org.apache.spark.sql.catalyst"
_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")


def conjuncts(condition: Any) -> Iterator[Any]:
    """The conjuncts of a condition."""
    left = [condition]
    while left:
        node = left.pop()
        if node.nodeName() == "And":
            left += [node.right(), node.left()]
        else:
            yield node


def column_in(node: Any) -> Any | None:
    """The column in an expression that is a column, or its cast to a wider integer; None for other expressions."""
    while node.nodeName() == "Cast":
        names = [str(each.dataType().simpleString()) for each in (node.child(), node)]
        if not all(each in _WHOLE for each in names) or _WHOLE.index(names[0]) > _WHOLE.index(names[1]):
            return None
        node = node.child()
    return node if node.nodeName() == "AttributeReference" else None


def under(spark: SparkSession, node: Any, plan: Any, values: Sequence[Any]) -> Any:
    """A projection of values over a plan, with the names and ids of another plan's columns."""
    alias, option = jvm_class(spark, f"{CATALYST}.expressions.Alias"), jvm_class(spark, "scala.Option")
    columns = [
        alias(value, old.name(), old.exprId(), old.qualifier(), option.apply(old.metadata()), seq(spark, []))
        for old, value in zip(items(node.output()), values, strict=True)
    ]
    return jvm_class(spark, f"{CATALYST}.plans.logical.Project")(seq(spark, columns), plan)

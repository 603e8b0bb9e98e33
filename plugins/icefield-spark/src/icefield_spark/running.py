"""SQL for Spark that runs as it was checked: Spark substitutes no ``${...}`` after the check.

Spark substitutes each ``${...}`` in a text, including ``${...}`` in names and values of a table. So a text with
``${...}`` is parsed here without substitution, and Spark gets the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

from icefield.errors import UnsupportedFeature
from pyspark.sql import DataFrame, SparkSession

from icefield_spark.jvm import is_connected, jvm_class

REFERENCE: Final = "${"
"""The beginning of a reference that Spark substitutes."""

SUBSTITUTES: Final = "spark.sql.variable.substitute"
PARSER: Final = "org.apache.spark.sql.catalyst.parser.CatalystSqlParser$"


def run_sql(spark: SparkSession, text: str, frames: Mapping[str, DataFrame] | None = None) -> DataFrame:
    """Run a text. ``frames``: frames by their ``{name}`` in the text; with frames, other braces are doubled.

    Raises ``UnsupportedFeature`` for a text with ``${`` that is no query, and for every text with ``${`` through Spark
    Connect.
    """
    if REFERENCE not in text or not substitutes(spark):
        if frames and is_connected(spark):  # the frame is resolved when it is used, and a view would be gone by then
            return spark.sql(text, None, **frames)
        with named(frames or {}) as names:
            return spark.sql(text.format(**names) if frames else text)
    if is_connected(spark):
        raise UnsupportedFeature(
            f"Spark would put something else in place of '{REFERENCE}...}}' in this statement: set {SUBSTITUTES} to "
            "false"
        )
    with named(frames or {}) as names:
        return frame_of_plan(spark, parsed_plan(spark, text.format(**names) if frames else text))


def substitutes(spark: SparkSession) -> bool:
    """Whether a session substitutes ``${...}``."""
    return str(spark.conf.get(SUBSTITUTES, "true")).lower() == "true"


def substituted(spark: SparkSession, text: str) -> str:
    """A text with each ``${...}`` substituted by the session. Raises ``UnsupportedFeature``."""
    if REFERENCE not in text or not substitutes(spark):
        return text
    if is_connected(spark):
        raise UnsupportedFeature(
            f"through Spark Connect the value of '{REFERENCE}...}}' is not at hand: set {SUBSTITUTES} to false"
        )
    activate(spark)
    return str(jvm_class(spark, "org.apache.spark.sql.internal.VariableSubstitution")().substitute(text))


@contextmanager
def named(frames: Mapping[str, DataFrame]) -> Iterator[dict[str, str]]:
    """Temporary names for frames, which a text can use within the block."""
    names = {name: f"icefield_{uuid4().hex}" for name in frames}
    made: list[tuple[DataFrame, str]] = []
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(names[name])
            made.append((frame, names[name]))
        yield names
    finally:
        for frame, name in made:
            _drop(frame.sparkSession, name)


def _drop(spark: SparkSession, name: str) -> None:
    """Drop a view. ``catalog.dropTempView`` would also drop caches of the same plan."""
    if is_connected(spark):
        spark.catalog.dropTempView(name)
    else:
        spark._jsparkSession.sessionState().catalog().dropTempView(name)


def parsed_plan(spark: SparkSession, text: str) -> Any:
    """The plan that Spark's parser makes of a query, as the session's settings have it, and with ``${...}`` as it is.

    Raises ``UnsupportedFeature`` for a text that is no query, and Spark's own errors.
    """
    activate(spark)
    plan = getattr(jvm_class(spark, PARSER), "MODULE$").parsePlan(text)
    if plan is None:
        raise UnsupportedFeature(f"a statement with '{REFERENCE}' in it must be a query: {text:.200}")
    return plan


def frame_of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    """The frame of a plan, once Spark has resolved it."""
    java = spark._jsparkSession
    # In Spark 3.5 the class of a session is in another package.
    package = str(java.getClass().getPackageName())
    return DataFrame(jvm_class(spark, f"{package}.Dataset").ofRows(java, plan), spark)


def activate(spark: SparkSession) -> None:
    """Make this session the active one of the thread, so that Spark's parser uses its settings."""
    java = spark._jsparkSession
    jvm_class(spark, str(java.getClass().getName())).setActiveSession(java)

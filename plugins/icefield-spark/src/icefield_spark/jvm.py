"""Spark's JVM: whether a session has one at hand, and its classes."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def is_connected(spark: SparkSession) -> bool:
    """Whether a session goes through Spark Connect, which sends plans and has no JVM at hand."""
    return getattr(spark, "_sc", None) is None


def jvm_class(spark: SparkSession, name: str) -> Any:
    """A class by its full name.

    ``jvm.org.apache...`` would have the JVM look for a class of each part of the name, in each package and each jar
    that it knows: 4 to 8 ms a name in place of 0.03 (PySpark 4.3).
    """
    return getattr(spark._jvm, name)

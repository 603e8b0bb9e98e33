"""Classes of Spark's JVM."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def jvm_class(spark: SparkSession, name: str) -> Any:
    """A class by its full name.

    ``jvm.org.apache...`` would have the JVM look for a class of each part of the name, in each package and each jar
    that it knows: 4 to 8 ms a name in place of 0.03 (PySpark 4.3).
    """
    return getattr(spark._jvm, name)

"""Iceberg tables in PySpark, with no JVM jar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import lazy_names

if TYPE_CHECKING:
    from icefield_spark.java import ensure_java
    from icefield_spark.maintenance import SparkRunner
    from icefield_spark.session import IcefieldSession, attach, install

# Names are handed on lazily: the Python workers of Spark need readers and writers, and neither the session nor its SQL.
__getattr__, __dir__ = lazy_names(__name__)

__all__ = ["IcefieldSession", "SparkRunner", "attach", "ensure_java", "install"]

"""Iceberg tables in PySpark, with no JVM jar."""

from icefield_spark.java import ensure_java
from icefield_spark.session import IcefieldSession, attach

__all__ = ["IcefieldSession", "attach", "ensure_java"]

"""Iceberg tables in PySpark, with no JVM jar."""

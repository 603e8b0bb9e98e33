"""The module in which PySpark itself looks for data sources: it provides the format ``icefield``."""

from icefield_spark.data_source import IcefieldDataSource as DefaultSource

__all__ = ["DefaultSource"]

"""Where PySpark looks for data sources of its own accord: the format ``icefield``."""

from icefield_spark.data_source import IcefieldDataSource as DefaultSource

__all__ = ["DefaultSource"]

"""The table properties of Iceberg's runtime for Spark."""

# ruff: noqa: E501 -- the table reads best with one property a line
from __future__ import annotations

from typing import Final

from icefield.metadata import Property

# fmt: off
SPARK_FANOUT_ENABLED: Final = Property("write.spark.fanout.enabled", bool, False, "Whether Spark keeps a file open for each partition.", unread=True)
SPARK_ACCEPT_ANY_SCHEMA: Final = Property("write.spark.accept-any-schema", bool, False, "Whether Spark may write rows of another schema.", unread=True)
# fmt: on

PROPERTIES: Final = tuple(each for each in tuple(globals().values()) if isinstance(each, Property))
"""Every property above."""

"""Catalogs that a session's settings name."""

from __future__ import annotations

from icefield.errors import UnsupportedFeature
from pyspark.sql import SparkSession

from icefield_spark.catalog.java_properties import MARK, PREFIX
from icefield_spark.jvm import is_connected, settings_of


def refuse_connect(spark: SparkSession) -> None:
    """Raise ``UnsupportedFeature`` through Spark Connect."""
    if is_connected(spark):
        raise UnsupportedFeature(
            "through Spark Connect no catalog can be added to a session, whose JVM is elsewhere: leave name out, and "
            "use ice.sql and ice.table"
        )


def configured(spark: SparkSession) -> dict[str, dict[str, str]]:
    """The properties in the session's settings of each catalog that is set to ``icefield``, by name.

    Raises ``UnsupportedFeature`` through Spark Connect.
    """
    refuse_connect(spark)
    found = settings_of(spark)
    settings = {name[len(PREFIX) :]: value for name, value in found.items() if name.startswith(PREFIX)}
    names = [name for name, value in settings.items() if "." not in name and value == MARK]
    return {
        name: {key[len(name) + 1 :]: value for key, value in settings.items() if key.startswith(f"{name}.")}
        for name in sorted(names)
    }

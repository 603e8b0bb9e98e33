"""The hooks of this plugin."""

from collections.abc import Sequence

from icefield import Provider, hookimpl
from icefield.metadata import Property

from icefield_spark.properties import PROPERTIES


@hookimpl
def icefield_table_properties() -> Sequence[Property]:
    """Declare ``write.spark.*``."""
    return PROPERTIES


@hookimpl
def icefield_configurations() -> Sequence[Provider]:
    """Provide the catalogs of ``spark-defaults.conf``."""
    return [Provider("spark", "icefield_spark.defaults_file:catalogs")]

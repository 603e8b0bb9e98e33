"""The hooks of this plugin."""

from collections.abc import Sequence

from icefield import hookimpl
from icefield.metadata import Property

from icefield_spark.properties import PROPERTIES


@hookimpl
def icefield_table_properties() -> Sequence[Property]:
    """Declare ``write.spark.*``."""
    return PROPERTIES

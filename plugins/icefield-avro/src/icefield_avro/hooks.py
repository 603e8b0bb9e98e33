"""The providers of this plugin."""

from collections.abc import Sequence

from icefield import Provider, hookimpl
from icefield.metadata import Property

from icefield_avro.properties import PROPERTIES


@hookimpl
def icefield_file_formats() -> Sequence[Provider]:
    """Provide the format ``avro``."""
    return [Provider(("avro",), "icefield_avro.avro_format:AvroFormat", contract=(2, 2))]


@hookimpl
def icefield_table_properties() -> Sequence[Property]:
    """Declare ``write.avro.*``."""
    return PROPERTIES

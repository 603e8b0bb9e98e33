"""The providers of this plugin."""

from collections.abc import Sequence

from icefield import Provider, hookimpl
from icefield.metadata import Property

from icefield_orc.properties import PROPERTIES


@hookimpl
def icefield_file_formats() -> Sequence[Provider]:
    """Provide the format ``orc``."""
    return [Provider(("orc",), "icefield_orc.orc_format:OrcFormat", contract=(2, 2))]


@hookimpl
def icefield_table_properties() -> Sequence[Property]:
    """Declare ``write.orc.*`` and ``read.orc.*``."""
    return PROPERTIES

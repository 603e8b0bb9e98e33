"""The providers of this plugin."""

from collections.abc import Sequence

from icefield import Provider, hookimpl
from icefield.metadata import Property

from icefield_parquet.properties import PROPERTIES


@hookimpl
def icefield_file_formats() -> Sequence[Provider]:
    """Provide the format ``parquet``."""
    return [Provider(("parquet",), "icefield_parquet.parquet_format:ParquetFormat", contract=(2, 2))]


@hookimpl
def icefield_table_properties() -> Sequence[Property]:
    """Declare ``write.parquet.*`` and ``read.parquet.*``."""
    return PROPERTIES

"""The providers of this plugin."""

from collections.abc import Sequence

from icefield import Provider, hookimpl


@hookimpl
def icefield_file_formats() -> Sequence[Provider]:
    """Provide the format ``parquet``."""
    return [Provider(("parquet",), "icefield_parquet.parquet_format:ParquetFormat", contract=(2, 2))]

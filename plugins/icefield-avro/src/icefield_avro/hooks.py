"""The providers of this plugin."""

from collections.abc import Sequence

from icefield import Provider, hookimpl


@hookimpl
def icefield_file_formats() -> Sequence[Provider]:
    """Provide the format ``avro``."""
    return [Provider(("avro",), "icefield_avro.avro_format:AvroFormat", contract=(2, 2))]

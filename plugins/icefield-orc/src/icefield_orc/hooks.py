"""The providers of this plugin."""

from collections.abc import Sequence

from icefield import Provider, hookimpl


@hookimpl
def icefield_file_formats() -> Sequence[Provider]:
    """Provide the format ``orc``."""
    return [Provider(("orc",), "icefield_orc.orc_format:OrcFormat", contract=(2, 2))]

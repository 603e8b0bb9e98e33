"""The plugin's hooks."""

from __future__ import annotations

from icefield import Provider, hookimpl


@hookimpl
def icefield_file_systems() -> list[Provider]:
    """Provide the file systems of Azure's locations."""
    schemes = ("abfs", "abfss", "az", "wasb", "wasbs")
    return [Provider("adls", "icefield_adls.adls_file_system:AdlsFileSystem", contract=(1, 1), uri_schemes=schemes)]

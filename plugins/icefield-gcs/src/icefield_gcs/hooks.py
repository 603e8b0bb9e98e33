"""The plugin's hooks."""

from __future__ import annotations

from icefield import Provider, hookimpl


@hookimpl
def icefield_file_systems() -> list[Provider]:
    """Provide the file systems ``gs`` and ``gcs``."""
    return [Provider("gcs", "icefield_gcs.gcs_file_system:GcsFileSystem", contract=(1, 1), uri_schemes=("gs", "gcs"))]

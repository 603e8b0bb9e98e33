"""The plugin's hooks."""

from __future__ import annotations

from icefield import Provider, hookimpl


@hookimpl
def icefield_file_systems() -> list[Provider]:
    """Provide the file systems of S3's locations."""
    return [
        Provider("s3", "icefield_s3.s3_file_system:S3FileSystem", contract=(1, 1), uri_schemes=("s3", "s3a", "s3n"))
    ]

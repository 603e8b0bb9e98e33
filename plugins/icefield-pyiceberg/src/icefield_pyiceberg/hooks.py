"""The hooks of this plugin."""

from __future__ import annotations

from icefield import Provider, hookimpl


@hookimpl
def icefield_configurations() -> list[Provider]:
    """Provide the catalogs of ``.pyiceberg.yaml`` and of ``PYICEBERG_CATALOG__*``."""
    return [Provider("pyiceberg", "icefield_pyiceberg.reading:catalogs")]

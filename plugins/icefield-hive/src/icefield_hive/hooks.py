"""The hooks of this plugin."""

from __future__ import annotations

from icefield import Provider, hookimpl


@hookimpl
def icefield_catalogs() -> list[Provider]:
    """Provide the catalog ``hive``."""
    return [Provider(("hive",), "icefield_hive.backend:HiveBackend", contract=(2, 2))]

"""The hooks of this plugin."""

from __future__ import annotations

from icefield import Provider, hookimpl


@hookimpl
def icefield_catalogs() -> list[Provider]:
    """Provide the catalog ``glue``."""
    return [Provider("glue", "icefield_glue.backend:GlueBackend", contract=(2, 2))]

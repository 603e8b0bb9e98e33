"""The hooks of this plugin."""

from __future__ import annotations

from icefield import Provider, hookimpl


@hookimpl
def icefield_catalogs() -> list[Provider]:
    """Provide the catalog ``sql``."""
    return [Provider("sql", "icefield_sql.backend:SqlBackend", contract=(2, 2), uri_schemes=("sqlite", "postgresql"))]

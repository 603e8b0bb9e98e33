"""The hooks of this plugin."""

from __future__ import annotations

from icefield import Provider, hookimpl


@hookimpl
def icefield_catalogs() -> list[Provider]:
    """Provide the catalog ``sql``.

    The catalog refuses URIs that only look like a database in memory, and says how to name one.
    """
    schemes = ("sqlite", "postgresql", "file", "")
    return [Provider("sql", "icefield_sql.backend:SqlBackend", contract=(2, 2), uri_schemes=schemes)]

"""The catalogs that the integration tests run over, by the name of their strategy."""

from __future__ import annotations

from pathlib import Path

from icefield import Catalog, Plugins, load_catalog

KINDS = ("rename", "create", "sql")


def open_catalog(kind: str, folder: Path | str, plugins: Plugins | None = None) -> Catalog:
    """A catalog below a folder: a directory with ``rename`` or ``create``, or SQLite."""
    warehouse = f"file://{folder}/warehouse"
    if kind == "sql":
        uri = f"sqlite:///{folder}/catalog.db"
        return load_catalog("test", plugins=plugins, type="sql", uri=uri, warehouse=warehouse)
    return load_catalog("test", plugins=plugins, type="directory", warehouse=warehouse, commit=kind)

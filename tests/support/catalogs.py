"""The catalogs that the integration tests run over, by the name of their strategy."""

from __future__ import annotations

from pathlib import Path

from icefield import Catalog, Plugins, load_catalog

KINDS = ("rename", "create", "sql")


def properties_of(kind: str, folder: Path | str) -> dict[str, str]:
    """The properties of a catalog below a folder: a directory with ``rename`` or ``create``, or SQLite."""
    warehouse = f"file://{folder}/warehouse"
    if kind == "sql":
        return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": warehouse}
    return {"type": "directory", "warehouse": warehouse, "commit": kind}


def open_catalog(kind: str, folder: Path | str, plugins: Plugins | None = None) -> Catalog:
    """A catalog below a folder, with the properties that ``properties_of`` states."""
    return load_catalog("test", plugins=plugins, **properties_of(kind, folder))

"""Icefield: a plugin-based storage and catalog framework for Apache Iceberg tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icefield.catalog import Catalog, load_catalog, open_table
    from icefield.errors import IcefieldError
    from icefield.hookspecs import Provider, hookimpl
    from icefield.manifest import clear_caches
    from icefield.plugins import Plugins
    from icefield.schema import Schema
    from icefield.table import Table

# Names are handed on lazily, so that `import icefield` costs nothing that is not used.
_PUBLIC = {
    "Catalog": "icefield.catalog",
    "IcefieldError": "icefield.errors",
    "Plugins": "icefield.plugins",
    "Provider": "icefield.hookspecs",
    "Schema": "icefield.schema",
    "Table": "icefield.table",
    "clear_caches": "icefield.manifest",
    "hookimpl": "icefield.hookspecs",
    "load_catalog": "icefield.catalog",
    "open_table": "icefield.catalog",
}

__version__ = "0.1.0"
__all__ = [
    "Catalog",
    "IcefieldError",
    "Plugins",
    "Provider",
    "Schema",
    "Table",
    "clear_caches",
    "hookimpl",
    "load_catalog",
    "open_table",
]


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'icefield' has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)

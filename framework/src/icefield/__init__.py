"""Icefield: a plugin-based storage and catalog framework for Apache Iceberg tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icefield.builtin.local import LocalFileSystem
    from icefield.builtin.memory import MemoryFileSystem
    from icefield.catalog import Catalog, Table, View, load_catalog, open_table
    from icefield.catalog.config import (
        catalog_properties,
        configuration_file,
        configured_catalogs,
        default_catalog_name,
    )
    from icefield.errors import IcefieldError
    from icefield.manifest import clear_caches
    from icefield.plugins import InstallHint, PluginInfo, Plugins, Provider, TableService, hookimpl, hookspec
    from icefield.schema import Schema
    from icefield.storage import FileIO

# Names are imported lazily, so that `import icefield` loads no unused module.
_PUBLIC = {
    "default_catalog_name": "icefield.catalog.config",
    "catalog_properties": "icefield.catalog.config",
    "configuration_file": "icefield.catalog.config",
    "configured_catalogs": "icefield.catalog.config",
    "Catalog": "icefield.catalog",
    "FileIO": "icefield.storage",
    "IcefieldError": "icefield.errors",
    "InstallHint": "icefield.plugins.hookspecs",
    "LocalFileSystem": "icefield.builtin.local",
    "MemoryFileSystem": "icefield.builtin.memory",
    "PluginInfo": "icefield.plugins",
    "Plugins": "icefield.plugins",
    "Provider": "icefield.plugins.hookspecs",
    "Schema": "icefield.schema",
    "Table": "icefield.catalog.table",
    "TableService": "icefield.plugins.hookspecs",
    "View": "icefield.catalog.views",
    "clear_caches": "icefield.manifest",
    "hookimpl": "icefield.plugins.hookspecs",
    "hookspec": "icefield.plugins.hookspecs",
    "load_catalog": "icefield.catalog",
    "open_table": "icefield.catalog",
}

__version__ = "0.1.0"
__all__ = [
    "Catalog",
    "FileIO",
    "IcefieldError",
    "InstallHint",
    "LocalFileSystem",
    "MemoryFileSystem",
    "PluginInfo",
    "Plugins",
    "Provider",
    "Schema",
    "Table",
    "TableService",
    "View",
    "catalog_properties",
    "clear_caches",
    "configuration_file",
    "configured_catalogs",
    "default_catalog_name",
    "hookimpl",
    "hookspec",
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

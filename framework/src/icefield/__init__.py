"""Icefield: a plugin-based storage and catalog framework for Apache Iceberg tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield.base.lazy_names import lazy_names
from icefield.base.version import __version__ as __version__

if TYPE_CHECKING:
    from icefield.base.progress import progress
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
    from icefield.plugins import (
        InstallHint,
        PluginInfo,
        PluginKind,
        Plugins,
        Provider,
        TableService,
        hookimpl,
        hookspec,
    )
    from icefield.schema import Schema
    from icefield.storage import FileIO

# Names are imported lazily, so that `import icefield` loads no unused module.
__getattr__, __dir__ = lazy_names(__name__)


__all__ = [
    "Catalog",
    "FileIO",
    "IcefieldError",
    "InstallHint",
    "LocalFileSystem",
    "MemoryFileSystem",
    "PluginInfo",
    "PluginKind",
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
    "lazy_names",
    "load_catalog",
    "open_table",
    "progress",
]

"""Icefield: a plugin-based storage and catalog framework for Apache Iceberg tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield.base.lazy_names import lazy_names
from icefield.base.version import __version__ as __version__

if TYPE_CHECKING:
    from icefield.builtin.local import LocalFileSystem as LocalFileSystem
    from icefield.builtin.memory import MemoryFileSystem as MemoryFileSystem
    from icefield.catalog import Catalog as Catalog
    from icefield.catalog import Table as Table
    from icefield.catalog import View as View
    from icefield.catalog import load_catalog as load_catalog
    from icefield.catalog import open_table as open_table
    from icefield.catalog.config import catalog_properties as catalog_properties
    from icefield.catalog.config import configuration_file as configuration_file
    from icefield.catalog.config import configured_catalogs as configured_catalogs
    from icefield.catalog.config import default_catalog_name as default_catalog_name
    from icefield.errors import IcefieldError as IcefieldError
    from icefield.manifest import clear_caches as clear_caches
    from icefield.plugins import InstallHint as InstallHint
    from icefield.plugins import PluginInfo as PluginInfo
    from icefield.plugins import PluginKind as PluginKind
    from icefield.plugins import Plugins as Plugins
    from icefield.plugins import Provider as Provider
    from icefield.plugins import TableService as TableService
    from icefield.plugins import hookimpl as hookimpl
    from icefield.plugins import hookspec as hookspec
    from icefield.schema import Schema as Schema
    from icefield.storage import FileIO as FileIO

# Names are imported lazily, so that `import icefield` loads no unused module.
__getattr__, __dir__ = lazy_names(__name__)
__all__ = [*__dir__(), "lazy_names"]

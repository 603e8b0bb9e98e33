"""The hook specifications and the registry of plugins."""

from icefield.plugins.hookspecs import InstallHint, Provider, TableService, hookimpl, hookspec
from icefield.plugins.records import PluginInfo
from icefield.plugins.registry import Plugins, library
from icefield.plugins.services import Extensible

__all__ = [
    "Extensible",
    "InstallHint",
    "PluginInfo",
    "Plugins",
    "Provider",
    "TableService",
    "hookimpl",
    "hookspec",
    "library",
]

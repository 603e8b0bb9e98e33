"""The hook specifications and the registry of plugins."""

from icefield.plugins.hookspecs import InstallHint, Provider, TableService, hookimpl, hookspec
from icefield.plugins.listeners import Listeners, ToldOperation
from icefield.plugins.records import PluginInfo, PluginKind
from icefield.plugins.registry import Plugins
from icefield.plugins.services import Extensible

__all__ = [
    "Extensible",
    "InstallHint",
    "Listeners",
    "PluginInfo",
    "PluginKind",
    "Plugins",
    "Provider",
    "TableService",
    "ToldOperation",
    "hookimpl",
    "hookspec",
]

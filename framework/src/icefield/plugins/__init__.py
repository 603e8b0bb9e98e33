"""The hook specifications and the registry of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from icefield.plugins.hookspecs import InstallHint, Provider, TableService, hookimpl, hookspec
    from icefield.plugins.listeners import Listeners, ToldOperation
    from icefield.plugins.records import PluginInfo, PluginKind
    from icefield.plugins.registry import Plugins
    from icefield.plugins.services import Extensible

__getattr__, __dir__ = lazy_names(__name__)

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

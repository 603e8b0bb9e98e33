"""The hook specifications and the registry of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from icefield.plugins.hookspecs import InstallHint as InstallHint
    from icefield.plugins.hookspecs import Provider as Provider
    from icefield.plugins.hookspecs import TableService as TableService
    from icefield.plugins.hookspecs import hookimpl as hookimpl
    from icefield.plugins.hookspecs import hookspec as hookspec
    from icefield.plugins.listeners import Listeners as Listeners
    from icefield.plugins.listeners import ToldOperation as ToldOperation
    from icefield.plugins.records import PluginInfo as PluginInfo
    from icefield.plugins.records import PluginKind as PluginKind
    from icefield.plugins.registry import Plugins as Plugins
    from icefield.plugins.services import Extensible as Extensible

__getattr__, __dir__ = lazy_names(__name__)

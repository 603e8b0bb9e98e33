"""The hook specifications and the registry of plugins."""

from icefield.plugins.hookspecs import Provider, hookimpl
from icefield.plugins.registry import PluginInfo, Plugins

__all__ = ["PluginInfo", "Plugins", "Provider", "hookimpl"]

"""The hook specifications and the registry of plugins."""

from icefield.plugins.hookspecs import InstallHint, Provider, hookimpl
from icefield.plugins.registry import PluginInfo, Plugins, library

__all__ = ["InstallHint", "PluginInfo", "Plugins", "Provider", "hookimpl", "library"]

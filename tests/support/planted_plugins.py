"""Plugins that look installed, as if by an entry point, without a distribution."""

from __future__ import annotations

from typing import Any

import pytest
from icefield.plugins import PluginInfo, registry


def plant(
    patch: pytest.MonkeyPatch, name: str, plugin: Any, distribution: str | None = None, version: str | None = None
) -> None:
    """Install a plugin beside the others; an exception as ``plugin`` is raised when the plugin is imported."""
    installed = registry._entry_points()
    planted = (PluginInfo(name, distribution, version), plugin)
    patch.setattr(registry, "_entry_points", lambda: (*installed, planted))


def uninstall(patch: pytest.MonkeyPatch, name: str) -> None:
    """Leave out an installed plugin."""
    left = tuple(each for each in registry._entry_points() if each[0].name != name)
    patch.setattr(registry, "_entry_points", lambda: left)

"""Plugins that tests make: modules with hook implementations."""

from __future__ import annotations

import types
from typing import Any

from icefield import Provider, hookimpl

LOCAL = "icefield.builtin.local:LocalFileSystem"
"""A target that any process can import."""


def plugin(name: str, **hooks: Any) -> types.ModuleType:
    """A module with hook implementations."""
    module = types.ModuleType(name)
    for hook, returned in hooks.items():

        def implementation(returned: Any = returned) -> Any:
            if isinstance(returned, Exception):
                raise returned
            return returned

        implementation.__name__ = hook
        setattr(module, hook, hookimpl(implementation))
    return module


def schemes(*names: str, target: str = LOCAL) -> list[Provider]:
    return [Provider(names, target)]

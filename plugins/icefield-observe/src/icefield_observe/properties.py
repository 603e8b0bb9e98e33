"""Checks of the properties of a listener."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from icefield.errors import InvalidArgument


def is_enabled(plugin: str, properties: Mapping[str, str], known: Collection[str]) -> bool:
    """Whether the properties leave a listener on. Raises ``InvalidArgument`` for unknown names and values."""
    unknown = sorted(properties.keys() - {"enabled", *known})
    if unknown:
        names = ", ".join(sorted({"enabled", *known}))
        raise InvalidArgument(f"there is no property 'events.{plugin}.{unknown[0]}'; the properties are {names}")
    enabled = properties.get("enabled", "true").lower()
    if enabled not in ("true", "false"):
        raise InvalidArgument(f"'events.{plugin}.enabled' is true or false, not '{enabled}'")
    return enabled == "true"

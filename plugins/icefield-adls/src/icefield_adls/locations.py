"""The forms of a location, all of which name a container, a path and perhaps an account.

- ``abfss://container@account.dfs.core.windows.net/path``, ``abfs``, ``wasb`` and ``wasbs`` alike
- ``az://container/path``, ``abfs://container/path``: the account is the one of the properties
"""

from __future__ import annotations

from dataclasses import dataclass

from icefield.errors import FileMissing


@dataclass(frozen=True, slots=True)
class Place:
    """Where a location leads: the host as written, or None; the container; the path in it, to the letter."""

    host: str | None
    container: str
    path: str


def place_of(location: str) -> Place:
    """Take a location apart. Raises ``FileMissing`` where it names no container."""
    authority, _, path = location.partition("://")[2].partition("/")
    container, at, host = authority.partition("@")
    if not container or (at and not host):
        message = f"{location} is no location: write abfss://container@account.dfs.core.windows.net/path"
        raise FileMissing(message, location=location)
    return Place(host.lower() if at else None, container, path)

"""The forms of a location. Each names a container, a path and perhaps an account.

- ``abfss://container@account.dfs.core.windows.net/path``, ``abfs``, ``wasb`` and ``wasbs`` alike
- ``az://container/path``, ``abfs://container/path``: the account comes from the properties
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from icefield.errors import FileMissing, LocationRefused
from icefield.toolkit import split_host, split_location

SCHEMES: Final = frozenset({"abfs", "abfss", "az", "wasb", "wasbs"})
_CONTAINER: Final = re.compile(r"\$?[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # workspaces of OneLake are spelt freely


@dataclass(frozen=True, slots=True)
class BlobLocation:
    """The parts of a location: the host in lower case, or None; the container; the path in it, not decoded."""

    host: str | None
    container: str
    path: str


def place_of(location: str) -> BlobLocation:
    """Take a location apart.

    Raises ``FileMissing`` for a location without a container, ``LocationRefused`` for an invalid container or host.
    """
    _, authority, path = split_location(location)
    container, at, host = authority.partition("@")
    if not container or (at and not host):
        message = f"{location} is no location: write abfss://container@account.dfs.core.windows.net/path"
        raise FileMissing(message, location=location)
    if _CONTAINER.fullmatch(container) is None:
        raise LocationRefused(f"{location} is refused: '{container}' is no name of a container", location=location)
    return BlobLocation(str(split_host(host, location)) if at else None, container, path)

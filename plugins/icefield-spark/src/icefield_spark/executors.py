"""What executors are given of a catalog: what reading and writing files takes, and nothing of its metastore or lock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from icefield import FileIO

C = TypeVar("C", bound=Any)
# Only the driver, which plans and commits, asks a metastore, a lock or a REST service.
_DRIVERS_OWN = (
    *("lock.", "dynamodb.", "hive.", "iceberg.hive."),
    *("rest.", "header.", "ssl.", "gcp.auth.", "urn:ietf:params:oauth:token-type:"),
)
_DRIVERS_NAMES = frozenset({"uri", "token", "credential", "oauth2-server-uri"})


def for_executors(context: C) -> C:
    """A scan's or a write's context without the properties that only the driver needs, their credentials among them."""
    io: FileIO = context.io
    kept = {
        name: value
        for name, value in io.properties.items()
        if name not in _DRIVERS_NAMES and not name.startswith(_DRIVERS_OWN)
    }
    made: C = replace(context, io=FileIO(io.plugins, kept, io.base, io.access))
    return made

"""The icefield command, and what plugins need for commands of their own."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icefield_cli.context import Context, Row
    from icefield_cli.hookspecs import Argument, Command, Option, WrongUsage
    from icefield_cli.people import size, utc
    from icefield_cli.rows import rows_of

# Names are imported lazily: each process that lists plugins imports this package.
_PUBLIC = {
    "Argument": "icefield_cli.hookspecs",
    "Command": "icefield_cli.hookspecs",
    "Context": "icefield_cli.context",
    "Option": "icefield_cli.hookspecs",
    "Row": "icefield_cli.context",
    "WrongUsage": "icefield_cli.hookspecs",
    "rows_of": "icefield_cli.rows",
    "size": "icefield_cli.people",
    "utc": "icefield_cli.people",
}

__all__ = ["Argument", "Command", "Context", "Option", "Row", "WrongUsage", "rows_of", "size", "utc"]


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'icefield_cli' has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)

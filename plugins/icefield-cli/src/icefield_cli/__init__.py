"""The icefield command, and what plugins need for commands of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import lazy_names

if TYPE_CHECKING:
    from icefield_cli.context import Context, Row
    from icefield_cli.hookspecs import Argument, Command, Option, WrongUsage
    from icefield_cli.people import size, utc
    from icefield_cli.rows import rows_of
    from icefield_cli.scanning import limit_of, print_batches

# Names are imported lazily: each process that lists plugins imports this package.
__getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Argument",
    "Command",
    "Context",
    "Option",
    "Row",
    "WrongUsage",
    "limit_of",
    "print_batches",
    "rows_of",
    "size",
    "utc",
]

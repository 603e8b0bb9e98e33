"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefield import hookimpl

if TYPE_CHECKING:
    from icefield_cli import Command


@hookimpl(optionalhook=True)
def icefield_commands() -> Sequence[Command]:
    """Provide ``icefield mcp``."""
    from icefield_cli import Command, Option

    return [
        Command(
            "mcp",
            "Serve tables to a program that speaks the Model Context Protocol, such as an assistant.\n\n"
            "It answers on its standard streams and changes nothing. --catalog serves one catalog instead of all.",
            "icefield_tools.mcp.command:run",
            (
                Option("max_rows", "The most rows of an answer; default: 100.", kind="integer", bounds=(1, 10_000)),
                Option(
                    "max_bytes",
                    "The most bytes of values in an answer; default: 200000.",
                    kind="integer",
                    bounds=(1_000, 10_000_000),
                ),
            ),
        )
    ]

"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefield import hookimpl

if TYPE_CHECKING:
    from icefield_cli import Command


@hookimpl(optionalhook=True)
def icefield_commands() -> Sequence[Command]:
    """Provide ``icefield report``."""
    from icefield_cli import Argument, Command, Option

    return [
        Command(
            "report",
            "Write a page about a table, or about all tables of the catalog: plots, and advice on maintenance.",
            "icefield_report.command:run",
            (
                Argument("table", is_required=False),
                Option(
                    "path", "The HTML file that is written.", spellings=("-o", "--to"), metavar="FILE", is_required=True
                ),
            ),
        )
    ]

"""A distribution of another author: the command ``lint``, which checks the names of a table's columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefield import hookimpl

if TYPE_CHECKING:
    from icefield_cli import Command


@hookimpl(optionalhook=True)
def icefield_commands() -> Sequence[Command]:
    """Provide ``icefield lint``."""
    from icefield_cli import Argument, Command, Option

    return [
        Command(
            "lint",
            "Check the names of a table's columns.",
            "authors.lint.lint_command:run",
            (
                Argument("table"),
                Option("style", "How names are written; default: snake.", choices=("snake", "camel"), default="snake"),
                Option("except_for", "Names that are not checked.", "names", ("--except",)),
                Option("shortest", "The fewest letters.", "authors.lint.lint_command:letters", metavar="N"),
                Option("fail", "Fail where a name is wrong.", "flag"),
            ),
            goes_with={"fail": ("style",)},
        )
    ]

"""The hooks of this plugin."""

from collections.abc import Sequence

from icefield import hookimpl

from icefield_cli.hookspecs import Command


@hookimpl
def icefield_addhooks() -> Sequence[str]:
    """Add the hook for commands."""
    return ["icefield_cli.hookspecs"]


@hookimpl
def icefield_commands() -> Sequence[Command]:
    """Provide the commands for catalogs and tables."""
    from icefield_cli.commands import COMMANDS

    return COMMANDS

"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefield import Provider, hookimpl

if TYPE_CHECKING:
    from icefield_cli import Command


@hookimpl(optionalhook=True)
def icefield_commands() -> Sequence[Command]:
    """Provide ``icefield ui``."""
    from icefield_cli import Command, Option

    return [
        Command(
            "ui",
            "Serve pages about the catalog to a browser on this machine, until the process is stopped.",
            "icefield_explorer.command:run",
            (Option("port", "Default: 8182.", kind="integer", bounds=(1, 65535), metavar="NUMBER", default=8182),),
        )
    ]


@hookimpl(optionalhook=True)
def icefield_pages() -> list[Provider]:
    """Provide the explorer's pages at ``/ui``."""
    return [Provider("ui", "icefield_explorer.pages:show")]

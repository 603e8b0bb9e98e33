"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefield import hookimpl

if TYPE_CHECKING:
    from icefield_cli import Command


@hookimpl(optionalhook=True)
def icefield_commands() -> Sequence[Command]:
    """Provide ``icefield kit``."""
    from icefield_cli import Argument, Command, Option

    return [
        Command(
            "kit",
            "Run the conformance kit on a class of a plugin, and print a report.\n\n"
            "TARGET is module:Class of a file format, a file system, a commit strategy, a catalog or a key service,\n"
            "or the module of a listener. --property gives the properties with which it is built. In properties and\n"
            "in --location, {fresh} stands for a name and {folder} for an empty folder that each check has for itself.",
            "icefield_testing.command.running:run",
            (
                Argument("target"),
                Option("location", "Where the files of checks are; default: an empty folder.", metavar="URI"),
                Option(
                    "raw",
                    "The same place as a folder or as a URL of fsspec, to look around a file system.",
                    metavar="URL",
                ),
                Option("service_port", "The property with the port of the service, to lose replies.", metavar="KEY"),
                Option("suite", "Run this suite; may be repeated; default: all.", metavar="NAME", is_repeatable=True),
                Option("check", "Run the checks whose names match, as -k of pytest does.", metavar="EXPRESSION"),
                Option(
                    "attributes",
                    "An attribute of the suites: part_size=65536, unsupported=VariantType.",
                    kind="pair",
                    spellings=("--set",),
                    is_repeatable=True,
                ),
                Option("kit_version", "Leave out checks that are newer than this version.", metavar="VERSION"),
            ),
        )
    ]

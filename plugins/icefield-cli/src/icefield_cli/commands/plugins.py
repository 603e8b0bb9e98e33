"""List the plugins, the extensions that each provides, and the errors of failed plugins."""

from __future__ import annotations

from icefield import Plugins

from icefield_cli.context import Context
from icefield_cli.hookspecs import Command


def run(context: Context) -> None:
    """Run the command."""
    plugins = Plugins.installed()
    nouns = {kind.name: kind.noun for kind in plugins.kinds()} | {"commands": "command"}
    commands = plugins.records("icefield_commands", Command)
    rows = []
    for info in plugins.listing():
        provided = [*info.provides, *(("commands", command.name) for plugin, command in commands if plugin == info)]
        rows.append(
            {
                "plugin": info.name,
                "distribution": info.distribution,
                "version": info.version,
                "provides": ", ".join(
                    [*(f"{nouns[kind]} {name}" for kind, name in provided), *(["listener"] if info.listens else [])]
                ),
                "error": "disabled" if info.disabled else info.error,
            }
        )
    context.rows(rows, ("plugin", "distribution", "version", "provides", "error"))

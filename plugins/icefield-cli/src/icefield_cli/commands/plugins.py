"""List the plugins, the extensions that each provides, and the errors of failed plugins."""

from __future__ import annotations

from icefield import Plugins

from icefield_cli.context import Context
from icefield_cli.hookspecs import Command

_NOUNS = {
    "file-formats": "file format",
    "file-systems": "file system",
    "commit-strategies": "commit strategy",
    "catalogs": "catalog",
    "catalog-uris": "catalog of URIs",
    "table-services": "service of tables",
    "scan-services": "service of scans",
    "filter-services": "filters",
    "commands": "command",
}


def run(context: Context) -> None:
    """Run the command."""
    plugins = Plugins.installed()
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
                    [*(f"{_NOUNS[kind]} {name}" for kind, name in provided), *(["listener"] if info.listens else [])]
                ),
                "error": "disabled" if info.disabled else info.error,
            }
        )
    context.rows(rows, ("plugin", "distribution", "version", "provides", "error"))

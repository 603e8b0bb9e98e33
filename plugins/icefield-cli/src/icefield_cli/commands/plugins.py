"""List the plugins, the extensions that each provides, and the errors of failed plugins."""

from __future__ import annotations

from icefield import Plugins

from icefield_cli.context import Context
from icefield_cli.options import command

_NOUNS = {
    "file-formats": "file format",
    "file-systems": "file system",
    "commit-strategies": "commit strategy",
    "catalogs": "catalog",
    "table-services": "service of tables",
    "scan-services": "service of scans",
}


@command("plugins", __doc__)
def run(context: Context) -> None:
    """Run the command."""
    rows = []
    for info in Plugins.installed().listing():
        rows.append(
            {
                "plugin": info.name,
                "distribution": info.distribution,
                "version": info.version,
                "provides": ", ".join(f"{_NOUNS[kind]} {name}" for kind, name in info.provides),
                "error": info.error,
            }
        )
    context.rows(rows, ("plugin", "distribution", "version", "provides", "error"))

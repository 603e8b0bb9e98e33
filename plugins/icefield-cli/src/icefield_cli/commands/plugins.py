"""List the plugins, what each provides, and why one failed."""

from __future__ import annotations

import argparse

from icefield import Plugins

from icefield_cli.context import Context

NAME = "plugins"
_NOUNS = {
    "file-formats": "file format",
    "file-systems": "file system",
    "commit-strategies": "commit strategy",
    "catalogs": "catalog",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    del parser


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    del given
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

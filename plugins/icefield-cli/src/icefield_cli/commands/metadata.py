"""Print the metadata of a table as it is stored: its JSON, indented."""

from __future__ import annotations

import argparse
import gzip
import json

from icefield_cli import output
from icefield_cli.context import Context

NAME = "metadata"
_GZIP = b"\x1f\x8b"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table, or a metadata file")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table = context.table(given.table)  # whose metadata has been read and checked, bounds and all
    data = table.io.read(table.metadata_location)
    output.print_record(json.loads(gzip.decompress(data) if data.startswith(_GZIP) else data), json=True)

"""Print the metadata of a table as it is stored: its JSON, indented."""

from __future__ import annotations

import argparse
import json

from icefield.metadata import inflated

from icefield_cli import output
from icefield_cli.context import Context

NAME = "metadata"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table, or a metadata file")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table = context.table(given.table)  # whose metadata has been read and checked, bounds and all
    data = table.io.read_metadata(table.metadata_location)
    output.print_record(json.loads(inflated(data, table.metadata_location)), json=True)

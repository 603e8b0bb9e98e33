"""Print the metadata of a table as it is stored: its JSON, indented."""

from __future__ import annotations

import json

from icefield.metadata import inflated

from icefield_cli import output
from icefield_cli.context import Context


def run(context: Context, table: str) -> None:
    """Run the command."""
    found = context.table(table)  # loading reads and checks the metadata, its bounds as well
    data = found.io.read_metadata(found.metadata_location)
    # Without --output it is the file, which programs may read as metadata; with it, it is like any JSON of a command.
    output.print_record(json.loads(inflated(data, found.metadata_location)), json=True, ids=context.json)

"""Make a table known whose metadata file is there already."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context

NAME = "register"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")
    parser.add_argument("metadata_location", help="the metadata file")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table = context.catalog.register_table(given.table, given.metadata_location)
    context.say(f"registered {given.table} at {table.metadata.location}", table=given.table)

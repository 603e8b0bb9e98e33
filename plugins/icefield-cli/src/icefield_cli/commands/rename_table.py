"""Rename a table; its files stay where they are."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context

NAME = "rename-table"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table, as it is called")
    parser.add_argument("name", help="namespace.table, as it shall be called")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    context.catalog.rename_table(given.table, given.name)
    context.say(f"renamed {given.table} to {given.name}", table=given.name)

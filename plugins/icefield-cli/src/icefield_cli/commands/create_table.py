"""Create a table without rows.

Example: icefield create-table db.events --column "id long required" --column "ts timestamptz" --partition "day(ts)"
"""

from __future__ import annotations

import argparse

from icefield import Schema
from icefield.types import IcebergType, NestedField, parse_type

from icefield_cli.context import Context, pair

NAME = "create-table"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")
    parser.add_argument(
        "--column",
        metavar="'NAME TYPE [required]'",
        type=_column,
        action="append",
        required=True,
        help="a column, such as 'price decimal(9,2)'; repeatable",
    )
    parser.add_argument(
        "--partition", metavar="FIELD", action="append", help="such as 'day(ts)', 'bucket[16](id)', 'kind'; repeatable"
    )
    parser.add_argument("--sort", metavar="FIELD", action="append", help="such as 'ts desc nulls last'; repeatable")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", type=pair, action="append", default=[], help="a property of it; repeatable"
    )
    parser.add_argument("--location", help="where it is; default: below the warehouse")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    fields = [NestedField(i, name, kind, required) for i, (name, kind, required) in enumerate(given.column, 1)]
    table = context.catalog.create_table(
        given.table,
        Schema(*fields),
        location=given.location,
        partition_spec=given.partition,
        sort_order=given.sort,
        properties=dict(given.set),
    )
    context.say(f"created {given.table} at {table.location()}", table=given.table, location=table.location())


def _column(given: str) -> tuple[str, IcebergType, bool]:
    name, _, kind = given.strip().partition(" ")
    required = kind.endswith(" required")
    kind = kind.removesuffix(" required").strip()
    if not kind:
        raise argparse.ArgumentTypeError(f"'{given}' is no 'NAME TYPE [required]'")
    try:
        return name, parse_type(kind), required
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None

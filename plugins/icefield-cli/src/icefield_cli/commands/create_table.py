"""Create a table without rows.

Example: icefield create-table db.events --column "id long required" --column "ts timestamptz" --partition "day(ts)"
"""

from __future__ import annotations

import click
from icefield import Schema
from icefield.types import IcebergType, NestedField, parse_type

from icefield_cli.context import Context
from icefield_cli.options import command, pairs_option, table_argument


def _column(given: str) -> tuple[str, IcebergType, bool]:
    name, _, kind = given.strip().partition(" ")
    required = kind.endswith(" required")
    kind = kind.removesuffix(" required").strip()
    if not kind:
        raise click.BadParameter(f"'{given}' is no 'NAME TYPE [required]'")
    try:
        return name, parse_type(kind), required
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@command("create-table", __doc__)
@table_argument
@click.option(
    "--column",
    "columns",
    metavar="'NAME TYPE [required]'",
    type=_column,
    multiple=True,
    required=True,
    help="A column, such as 'price decimal(9,2)'; repeatable.",
)
@click.option(
    "--partition", metavar="FIELD", multiple=True, help="Such as 'day(ts)', 'bucket[16](id)', 'kind'; repeatable."
)
@click.option("--sort", metavar="FIELD", multiple=True, help="Such as 'ts desc nulls last'; repeatable.")
@pairs_option("--set", "A property of it; repeatable.", "properties")
@click.option("--location", metavar="URI", help="Where it is; default: below the warehouse.")
def run(
    context: Context,
    table: str,
    columns: tuple[tuple[str, IcebergType, bool], ...],
    partition: tuple[str, ...],
    sort: tuple[str, ...],
    properties: tuple[tuple[str, str], ...],
    location: str | None,
) -> None:
    """Run the command."""
    fields = [NestedField(i, name, kind, required) for i, (name, kind, required) in enumerate(columns, 1)]
    made = context.catalog.create_table(
        table,
        Schema(*fields),
        location=location,
        partition_spec=list(partition) or None,
        sort_order=list(sort) or None,
        properties=dict(properties),
    )
    context.say(f"created {table} at {made.location()}", table=table, location=made.location())

"""Create a table without rows."""

from __future__ import annotations

from icefield import Schema
from icefield.types import IcebergType, NestedField, parse_type

from icefield_cli.context import Context


def column(given: str) -> tuple[str, IcebergType, bool]:
    """The name and type of a column, and whether it is required. Raises ``ValueError``."""
    name, _, kind = given.strip().partition(" ")
    required = kind.endswith(" required")
    kind = kind.removesuffix(" required").strip()
    if not kind:
        raise ValueError(f"'{given}' is no 'NAME TYPE [required]'")
    try:
        return name, parse_type(kind), required
    except ValueError as error:
        raise ValueError(str(error)) from None


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

"""Show the columns of a table."""

from __future__ import annotations

import argparse

from icefield.errors import InvalidArgument

from icefield_cli.context import Context

NAME = "schema"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table, or a metadata file")
    parser.add_argument("--id", type=int, dest="schema_id", metavar="ID", help="an earlier schema by its id")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table = context.table(given.table)
    schemas = table.schemas()
    if given.schema_id is not None and given.schema_id not in schemas:
        raise InvalidArgument(f"{given.table} has no schema {given.schema_id}; it has {', '.join(map(str, schemas))}")
    schema = table.schema() if given.schema_id is None else schemas[given.schema_id]
    rows = (
        {
            "id": number,
            "column": schema.find_column_name(number),
            "type": str(field.field_type),
            "required": field.required,
            "doc": field.doc,
        }
        for number, field in sorted(schema.id_to_field.items())
    )
    context.rows(rows, ("id", "column", "type", "required", "doc"))

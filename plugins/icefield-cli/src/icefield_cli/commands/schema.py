"""Show the columns of a table."""

from __future__ import annotations

from icefield.errors import InvalidArgument

from icefield_cli.context import Context


def run(context: Context, table: str, schema_id: int | None) -> None:
    """Run the command."""
    found = context.table(table)
    schemas = found.schemas()
    if schema_id is not None and schema_id not in schemas:
        raise InvalidArgument(f"{table} has no schema {schema_id}; it has {', '.join(map(str, schemas))}")
    schema = found.schema() if schema_id is None else schemas[schema_id]
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

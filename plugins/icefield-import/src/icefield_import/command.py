"""Create a table of files that are there: a folder, or a table of Delta Lake."""

from __future__ import annotations

import os

from icefield.storage import scheme_of
from icefield_cli import Context, WrongUsage, size

from icefield_import.delta_import import import_delta
from icefield_import.folder_import import import_folder
from icefield_import.folders import has_delta_log


def run(
    context: Context,
    table: str,
    location: str,
    file_format: str | None,
    types: tuple[tuple[str, str], ...],
    delimiter: str | None,
    dry_run: bool,
) -> None:
    """Run the command."""
    catalog = context.catalog
    if not scheme_of(location, default=""):
        location = os.path.abspath(location)
    is_delta = has_delta_log(catalog.io, location)
    if is_delta and (file_format is not None or types):
        raise WrongUsage("the log of a Delta table states its format and types: leave out --format and --type")
    with context.progress("importing"):
        if is_delta:
            made = import_delta(catalog, table, location, dry_run=dry_run)
        else:
            made = import_folder(
                catalog,
                table,
                location,
                file_format=file_format,
                types=dict(types),
                delimiter=delimiter,
                dry_run=dry_run,
            )
    rows = [
        {
            "column": field.name,
            "type": str(field.field_type),
            "partition": "identity" if field.name in made.partition_columns else None,
        }
        for field in made.schema.fields
    ]
    if dry_run:
        context.rows(rows, ("column", "type", "partition"))
        context.hint(
            f"{len(made.files):,} files of {made.file_format}, {size(made.size)}, would be "
            f"{'added where they are' if made.is_in_place else 'read and written into the table'}"
        )
        return
    context.say(
        f"imported {len(made.files):,} files of {made.file_format}, {size(made.size)}, as {table}",
        table=table,
        files=len(made.files),
        bytes=made.size,
        format=made.file_format,
        in_place=made.is_in_place,
    )

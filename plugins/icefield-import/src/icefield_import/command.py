"""Create a table of files that are there: a folder, or a table of Delta Lake or Hive."""

from __future__ import annotations

import os

import icefield
from icefield.storage import scheme_of
from icefield_cli import Context, WrongUsage, size

from icefield_import.delta_import import import_delta
from icefield_import.folder_import import ImportedFolder, import_folder
from icefield_import.folders import has_delta_log
from icefield_import.hive import import_hive


def run(
    context: Context,
    table: str,
    location: str,
    file_format: str | None,
    types: tuple[tuple[str, str], ...],
    metastore: str | None,
    accept_managed: bool,
    delimiter: str | None,
    dry_run: bool,
) -> None:
    """Run the command."""
    catalog = context.catalog
    if accept_managed and metastore is None:
        raise WrongUsage("--accept-managed goes with --metastore, for a table of Hive")
    if metastore is not None:
        if file_format is not None or delimiter is not None:
            raise WrongUsage("the metastore states the format of a table: leave out --format and --delimiter")
        with context.progress("importing"):
            made = import_hive(
                catalog,
                table,
                location,
                metastore=metastore if scheme_of(metastore, default="") else icefield.load_catalog(metastore),
                accept_managed=accept_managed,
                types=dict(types),
                dry_run=dry_run,
            )
        _tell(context, table, made)
        return
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
    _tell(context, table, made)


def _tell(context: Context, table: str, made: ImportedFolder) -> None:
    """Print the files and the table of an import."""
    if made.empty_folders:
        context.hint(f"{len(made.empty_folders):,} partitions have no file, such as {made.empty_folders[0]}")
    rows = [
        {
            "column": field.name,
            "type": str(field.field_type),
            "partition": "identity" if field.name in made.partition_columns else None,
        }
        for field in made.schema.fields
    ]
    files = f"{len(made.files):,} file{'' if len(made.files) == 1 else 's'} of {made.file_format}, {size(made.size)}"
    if made.table is None:
        context.rows(rows, ("column", "type", "partition"))
        context.hint(
            f"{files}, would be {'added where they are' if made.is_in_place else 'read and written into the table'}"
        )
        return
    context.say(
        f"imported {files}, as {table}",
        table=table,
        files=len(made.files),
        bytes=made.size,
        format=made.file_format,
        in_place=made.is_in_place,
    )

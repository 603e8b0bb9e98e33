"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefield import TableService, hookimpl

if TYPE_CHECKING:
    from icefield_cli import Command

_ADDING = "icefield_import.adding:adding_files"


@hookimpl
def icefield_table_services() -> Sequence[TableService]:
    """Provide ``add_files`` of tables and of transactions."""
    return [TableService("add_files", _ADDING), TableService("add_files", _ADDING, "transaction")]


@hookimpl(optionalhook=True)
def icefield_commands() -> Sequence[Command]:
    """Provide ``icefield import``."""
    from icefield_cli import Argument, Command, Option

    return [
        Command(
            "import",
            "Create a table of files that are there: a folder, or a table of Delta Lake or Hive.\n\n"
            "Files of Parquet, ORC and Avro stay where they are; rows of CSV and JSON are written into the table.\n"
            "Subfolders such as day=2024-01-31 become partitions. With --metastore, LOCATION names a table of Hive or\n"
            "Spark, such as db.trips.",
            "icefield_import.command:run",
            (
                Argument("table"),
                Argument("location"),
                Option(
                    "file_format", "The format of the files, if their names do not show it.", spellings=("--format",)
                ),
                Option(
                    "types",
                    "The type of a column, such as amount=decimal(9,2); repeatable.",
                    "pair",
                    ("--type",),
                    is_repeatable=True,
                ),
                Option("metastore", "Import a table of this catalog of type hive, or of thrift://host:9083."),
                Option("accept_managed", "Import a managed table, whose files Hive deletes with it.", "flag"),
                Option("delimiter", "The separator of CSV; default: a comma, and a tab in .tsv."),
                Option("dry_run", "Show the table that would be made.", "flag"),
            ),
        )
    ]

"""List the manifests of a table."""

from __future__ import annotations

from icefield_cli.context import Context, Row
from icefield_cli.options import command, id_option, table_argument
from icefield_cli.people import size
from icefield_cli.rows import rows_of

_COLUMNS = (
    "path",
    "size",
    "content",
    "partition_spec_id",
    "added_snapshot_id",
    "added_data_files_count",
    "existing_data_files_count",
    "deleted_data_files_count",
)


@command("manifests", __doc__)
@table_argument
@id_option("--snapshot", "An earlier snapshot by its id.")
def run(context: Context, table: str, snapshot: int | None) -> None:
    """Run the command."""
    found = context.table(table).inspect.manifests(snapshot)
    context.rows(rows_of(found.to_batches()), _COLUMNS, _for_people)


def _for_people(row: Row) -> Row:
    return {**row, "size": size(row["length"]), "content": "deletes" if row["content"] else "data"}

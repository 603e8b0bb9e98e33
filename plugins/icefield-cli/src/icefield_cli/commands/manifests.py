"""List the manifests of a table."""

from __future__ import annotations

from icefield_cli.context import Context
from icefield_cli.options import command, id_option, table_argument
from icefield_cli.rows import rows_of

_COLUMNS = (
    "path",
    "length",
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
    context.rows(rows_of(context.table(table).inspect.manifests(snapshot).to_batches()), _COLUMNS)

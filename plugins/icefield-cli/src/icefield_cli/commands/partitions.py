"""List the partitions of a table, with what each holds."""

from __future__ import annotations

from icefield.expressions import AlwaysTrue

from icefield_cli.context import Context
from icefield_cli.options import command, id_option, table_argument, where_option
from icefield_cli.rows import rows_of

_COLUMNS = ("partition", "spec_id", "record_count", "file_count", "total_data_file_size_in_bytes", "last_updated_at")


@command("partitions", __doc__)
@table_argument
@where_option("Only files that may match, such as \"ts >= '2024-01-01'\".")
@id_option("--snapshot", "An earlier snapshot by its id.")
def run(context: Context, table: str, where: str | None, snapshot: int | None) -> None:
    """Run the command."""
    inspect = context.table(table).inspect
    with context.progress("reading manifests"):
        found = inspect.partitions(snapshot, where or AlwaysTrue())
    context.rows(rows_of(found.to_batches()), [name for name in _COLUMNS if name in found.column_names])

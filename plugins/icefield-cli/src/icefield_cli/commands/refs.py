"""List the branches and tags of a table."""

from __future__ import annotations

from icefield_cli.context import Context
from icefield_cli.options import command, table_argument
from icefield_cli.rows import rows_of

_COLUMNS = (
    "name",
    "type",
    "snapshot_id",
    "max_reference_age_in_ms",
    "min_snapshots_to_keep",
    "max_snapshot_age_in_ms",
)


@command("refs", __doc__)
@table_argument
def run(context: Context, table: str) -> None:
    """Run the command."""
    context.rows(rows_of(context.table(table).inspect.refs().to_batches()), _COLUMNS)

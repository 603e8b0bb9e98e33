"""List the snapshots of a table."""

from __future__ import annotations

from icefield_cli.context import Context
from icefield_cli.options import command, table_argument
from icefield_cli.rows import rows_of

_COLUMNS = ("snapshot_id", "committed_at", "parent_id", "operation", "manifest_list")


@command("snapshots", __doc__)
@table_argument
def run(context: Context, table: str) -> None:
    """Run the command."""
    rows = rows_of(context.table(table).inspect.snapshots().to_batches())
    context.rows(({**row, "summary": dict(row["summary"] or ())} for row in rows), _COLUMNS)

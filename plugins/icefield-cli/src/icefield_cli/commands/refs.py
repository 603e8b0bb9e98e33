"""List the branches and tags of a table."""

from __future__ import annotations

from icefield_cli.context import Context, Row
from icefield_cli.people import age
from icefield_cli.rows import rows_of

_COLUMNS = ("name", "type", "snapshot_id", "max_ref_age", "min_snapshots", "max_snapshot_age")


def run(context: Context, table: str) -> None:
    """Run the command."""
    context.rows(rows_of(context.table(table).inspect.refs().to_batches()), _COLUMNS, _for_people)


def _for_people(row: Row) -> Row:
    # The columns have the names of the options that set them.
    return {
        **row,
        "type": row["type"].lower(),
        "max_ref_age": age(row["max_reference_age_in_ms"]),
        "min_snapshots": row["min_snapshots_to_keep"],
        "max_snapshot_age": age(row["max_snapshot_age_in_ms"]),
    }

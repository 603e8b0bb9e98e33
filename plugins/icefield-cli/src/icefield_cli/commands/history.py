"""List which snapshot was current when."""

from __future__ import annotations

from icefield_cli.context import Context, Row
from icefield_cli.people import seconds
from icefield_cli.rows import rows_of

_COLUMNS = ("made_current_at", "snapshot_id", "parent_id", "is_current_ancestor")


def run(context: Context, table: str) -> None:
    """Run the command."""
    context.rows(rows_of(context.table(table).inspect.history().to_batches()), _COLUMNS, _for_people)


def _for_people(row: Row) -> Row:
    return {**row, "made_current_at": seconds(row["made_current_at"])}

"""List the snapshots of a table."""

from __future__ import annotations

from icefield_cli.context import Context, Row
from icefield_cli.options import command, table_argument
from icefield_cli.people import number, utc
from icefield_cli.rows import rows_of

_SUMMARY = {
    "+rows": "added-records",
    "-rows": "deleted-records",
    "+files": "added-data-files",
    "-files": "deleted-data-files",
}
_COLUMNS = ("snapshot_id", "committed_at", "operation", *_SUMMARY)


@command("snapshots", __doc__)
@table_argument
def run(context: Context, table: str) -> None:
    """Run the command."""
    rows = rows_of(context.table(table).inspect.snapshots().to_batches())
    context.rows(({**row, "summary": dict(row["summary"] or ())} for row in rows), _COLUMNS, _for_people)


def _for_people(row: Row) -> Row:
    # Short, so that 80 columns hold a row.
    changed = {column: number(row["summary"].get(key, "0")) for column, key in _SUMMARY.items()}
    return {**row, **changed, "committed_at": utc(row["committed_at"].partition(".")[0])}

"""List the snapshots of a table."""

from __future__ import annotations

from collections.abc import Mapping

from icefield_cli.context import Context, Row
from icefield_cli.people import seconds
from icefield_cli.rows import rows_of

# For each column, the counts of the summary to add, and the counts to subtract. Rewritten position deletes delete no
# further rows.
_SUMMARY = {
    "+rows": (("added-records",), ()),
    "-rows": (("deleted-records", "added-position-deletes"), ("removed-position-deletes",)),
    "+files": (("added-data-files", "added-delete-files"), ()),
    "-files": (("deleted-data-files", "removed-delete-files"), ()),
}
_COLUMNS = ("snapshot_id", "committed_at", "operation", *_SUMMARY)


def run(context: Context, table: str) -> None:
    """Run the command."""
    rows = rows_of(context.table(table).inspect.snapshots().to_batches())
    context.rows(({**row, "summary": dict(row["summary"] or ())} for row in rows), _COLUMNS, _for_people)


def _for_people(row: Row) -> Row:
    # Short, so that 80 columns hold a row.
    summary = row["summary"]
    changed = {
        column: f"{max(_sum(summary, added) - _sum(summary, removed), 0):,}"
        for column, (added, removed) in _SUMMARY.items()
    }
    return {**row, **changed, "committed_at": seconds(row["committed_at"])}


def _sum(summary: Mapping[str, str], keys: tuple[str, ...]) -> int:
    """The sum of counts; values of other engines that are no counts are left out."""
    given = (summary.get(key, "") for key in keys)
    return sum(int(value) for value in given if value.isascii() and value.isdigit())

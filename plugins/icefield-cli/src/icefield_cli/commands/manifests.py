"""List the manifests of a table."""

from __future__ import annotations

from icefield_cli.context import Context, Row
from icefield_cli.people import number, size
from icefield_cli.rows import rows_of

_COLUMNS = ("path", "size", "content", "spec", "snapshot_id", "added", "existing", "deleted")


def run(context: Context, table: str, snapshot: int | None) -> None:
    """Run the command."""
    found = context.table(table).inspect.manifests(snapshot)
    context.rows(rows_of(found.to_batches()), _COLUMNS, _for_people)


def _for_people(row: Row) -> Row:
    # A manifest lists either data files or delete files: only the counts of that kind are shown.
    kind = "delete" if row["content"] else "data"
    return {
        "path": row["path"],
        "size": size(row["length"]),
        "content": "deletes" if row["content"] else "data",
        "spec": row["partition_spec_id"],
        "snapshot_id": row["added_snapshot_id"],
        **{each: number(row[f"{each}_{kind}_files_count"]) for each in ("added", "existing", "deleted")},
    }

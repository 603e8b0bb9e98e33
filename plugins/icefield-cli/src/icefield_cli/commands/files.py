"""List the data files of a table: all of them, or only the files that a filter may match."""

from __future__ import annotations

from icefield_cli.commands.versions import scan_of
from icefield_cli.context import Context, Row
from icefield_cli.people import number, partitions_of, size
from icefield_cli.rows import rows_of
from icefield_cli.scanning import filter_of

_COLUMNS = ("file_path", "file_format", "record_count", "file_size_in_bytes", "spec_id", "partition")
_FOR_PEOPLE = ("path", "format", "rows", "size", "partition")


def run(
    context: Context, table: str, where: str | None, snapshot: int | None, ref: str | None, as_of: int | None
) -> None:
    """Run the command."""
    named = context.table(table)
    scan = scan_of(named, snapshot, ref, as_of, row_filter=filter_of(where))
    with context.progress("planning"):
        plan = scan.plan_arrow()
    partition = partitions_of(named, plan.schema.field("partition").type)

    def for_people(row: Row) -> Row:
        return {
            **row,
            "partition": partition(row["partition"], row["spec_id"]),
            "path": row["file_path"],
            "format": row["file_format"],
            "rows": number(row["record_count"]),
            "size": size(row["file_size_in_bytes"]),
        }

    context.rows(rows_of(plan.select(_COLUMNS).to_batches()), _FOR_PEOPLE, for_people)

"""List the partitions of a table, with the rows, files and size of each."""

from __future__ import annotations

import pyarrow as pa

from icefield_cli.context import Context, Row
from icefield_cli.people import number, partitions_of, seconds, size
from icefield_cli.rows import rows_of
from icefield_cli.scanning import filter_of

_COLUMNS = ("rows", "files", "size", "updated")


def run(context: Context, table: str, where: str | None, snapshot: int | None) -> None:
    """Run the command."""
    named = context.table(table)
    with context.progress("reading manifests"):
        found = named.inspect.partitions(snapshot, filter_of(where))
    partitioned = "partition" in found.column_names
    partition = partitions_of(named, found.schema.field("partition").type if partitioned else pa.struct([]))

    def for_people(row: Row) -> Row:
        return {
            **row,
            "partition": partition(row.get("partition"), row.get("spec_id")),
            "spec": row.get("spec_id"),
            "rows": number(row["record_count"]),
            "files": number(row["file_count"]),
            "size": size(row["total_data_file_size_in_bytes"]),
            "updated": None if row["last_updated_at"] is None else seconds(row["last_updated_at"]),
        }

    spec = ("spec",) if len(named.metadata.partition_specs) > 1 else ()
    of_which = ("partition", *spec) if partitioned else ()
    context.rows(rows_of(found.to_batches()), (*of_which, *_COLUMNS), for_people)

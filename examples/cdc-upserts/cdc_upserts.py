"""Bring the changes of a database into a table, and read the changes from it: ``cdc_upserts.py FOLDER``."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import icefield
import pyarrow as pa

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("city", pa.string())])
# Events of a connector: an operation as Debezium writes it, and the row after the change (for a delete, its key).
CHANGES = [
    [("c", 1, "Ann", "Oslo"), ("c", 2, "Bob", "Rome"), ("c", 3, "Cyd", "Bern")],
    [("u", 2, "Bob", "Paris"), ("d", 3, None, None), ("c", 4, "Dan", "Oslo"), ("u", 4, "Dan", "Lima")],
    [("d", 1, None, None), ("c", 1, "Ann", "Cork")],
]


def batches() -> Iterator[pa.Table]:
    for changes in CHANGES:
        operations, *values = zip(*changes, strict=True)
        columns = [pa.array(column, field.type) for column, field in zip(values, COLUMNS, strict=True)]
        yield pa.table([pa.array(operations), *columns], names=["op", *COLUMNS.names])


def main(folder: str) -> None:
    with icefield.load_catalog("crm", type="directory", warehouse=folder) as catalog:
        catalog.create_namespace("crm")
        table = catalog.create_table("crm.people", COLUMNS)
        with table.update_schema() as update:
            update.set_identifier_fields("id")
        for number, batch in enumerate(batches()):
            # The number of the batch in the summary lets a job that was killed see where it stood.
            table.apply_changes(batch, operation_column="op", upsert=True, snapshot_properties={"batch": str(number)})
        for row in sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]):
            print(row["id"], row["name"], row["city"])
        print("stands at batch", table.current_snapshot().summary["batch"])

        first = table.snapshots()[0].snapshot_id
        changed = table.incremental_changelog_scan(from_snapshot_id_exclusive=first, net_changes=True)
        print("net changes since batch 0:", changed.count())
        table.maintenance.rewrite_data_files(rewrite_all=True)  # equality deletes make reading dearer until then
        print("rows:", table.scan().count())


if __name__ == "__main__":
    main(sys.argv[1])

"""Keep a copy of a table in a second cloud, and ask both: ``two_clouds.py``. The catalogs are ``primary`` and ``copy``.

The copy gets each appended row once, however often the job is run or killed.
"""

from __future__ import annotations

import icefield
import pyarrow as pa

TABLE = "sales.orders"
MIRRORED = "mirrored-snapshot"
"""A key of the copy's summaries: up to which snapshot of the first table it has the rows."""


def main() -> None:
    with icefield.load_catalog("primary") as primary, icefield.load_catalog("copy") as copy:
        source = the_table(primary)
        source.append(orders(range(0, 300)))
        source.append(orders(range(300, 500)))
        print("copied:", mirror(source, copy))
        print("copied again:", mirror(source, copy))

        with source.update_schema() as update:
            update.add_column("channel", "string")
        source.append(orders(range(500, 600), channel="web"))
        print("copied after a new column:", mirror(source, copy))
        compare(source, copy.load_table(TABLE))
        print("the copy is in", copy.load_table(TABLE).location().partition("://")[0])


def the_table(catalog: icefield.Catalog) -> icefield.Table:
    """The table in the first cloud."""
    catalog.create_namespace_if_not_exists("sales")
    rows = orders(range(0))
    return catalog.create_table(TABLE, rows.schema, partition_spec=["region", "day(at)"])


def orders(numbers: range, **more: str) -> pa.Table:
    """Some orders."""
    columns = {
        "id": pa.array(numbers, pa.int64()),
        "region": pa.array([("eu", "us")[number % 2] for number in numbers], pa.string()),
        "at": pa.array([number * 600_000_000 for number in numbers], pa.timestamp("us", "UTC")),
        "amount": pa.array([number % 50 for number in numbers], pa.float64()),
    }
    columns |= {name: pa.array([value] * len(numbers), pa.string()) for name, value in more.items()}
    return pa.table(columns)


def mirror(source: icefield.Table, catalog: icefield.Catalog) -> int:
    """Append the new rows of the table to the copy, and return their number.

    Rows stream from one store to the other, and memory does not have to hold them all. They are committed together with
    the id of the source's snapshot, so that no run adds them a second time.
    """
    head = source.refresh().current_snapshot()
    if head is None:
        return 0
    target = copy_of(source, catalog)
    before = mirrored(target)
    if before == head.snapshot_id:
        return 0
    scan = source.incremental_append_scan(from_snapshot_id_exclusive=before, to_snapshot_id_inclusive=head.snapshot_id)
    with target.transaction() as transaction:
        with transaction.update_schema() as update:
            update.union_by_name(source.schema())
        transaction.append(scan.to_arrow_batch_reader(), {MIRRORED: str(head.snapshot_id)})
    return scan.count()


def copy_of(source: icefield.Table, catalog: icefield.Catalog) -> icefield.Table:
    """Return the copy; create it with the table's schema and partition spec if it does not exist."""
    catalog.create_namespace_if_not_exists("sales")
    if not catalog.table_exists(TABLE):
        catalog.create_table(TABLE, source.schema(), partition_spec=source.spec())
    return catalog.load_table(TABLE)


def mirrored(target: icefield.Table) -> int | None:
    """Return the id of the last snapshot of the table that the copy has the rows of, or None."""
    snapshot = target.current_snapshot()
    while snapshot is not None:
        if MIRRORED in snapshot.summary:
            return int(snapshot.summary[MIRRORED])
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else target.snapshot_by_id(parent)
    return None


def compare(source: icefield.Table, target: icefield.Table) -> None:
    """The same question to both clouds, answered by region."""
    answers = []
    for table in (source, target):
        rows = table.scan("amount >= 25", ("region", "amount")).to_arrow()
        sums = rows.group_by("region").aggregate([("amount", "sum"), ([], "count_all")])
        answers.append(sorted(sums.to_pylist(), key=lambda row: row["region"]))
    for row in answers[0]:
        print(row["region"], row["count_all"], row["amount_sum"])
    print("both say so:", answers[0] == answers[1])


if __name__ == "__main__":
    main()

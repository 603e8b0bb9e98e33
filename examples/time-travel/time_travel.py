"""Read a table as it was, audit a change before it counts, and take one back: ``time_travel.py FOLDER``."""

from __future__ import annotations

import sys

import icefield
import pyarrow as pa


def prices(*rows: tuple[str, float]) -> pa.Table:
    return pa.table({"item": [row[0] for row in rows], "price": [row[1] for row in rows]})


def main(folder: str) -> None:
    with icefield.load_catalog("shop", type="directory", warehouse=folder) as catalog:
        catalog.create_namespace("shop")
        first = prices(("apple", 1.0), ("pear", 1.5))
        table = catalog.create_table("shop.prices", first.schema)
        table.append(first)
        table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "before-the-sale").commit()
        before = table.current_snapshot().timestamp_ms

        table.update("item = 'pear'", {"price": 0.5})
        print("now:", total(table.scan()))
        print("by tag:", total(table.scan(ref="before-the-sale")))
        print("by time:", total(table.scan().as_of(before)))

        # Readers of main do not see a change on a branch, until it is found right.
        table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "audit").commit()
        table.append(prices(("plum", -9.0)), branch="audit")
        wrong = table.scan("price < 0", ref="audit").count()
        print("wrong prices on the branch:", wrong, "and on main:", table.scan("price < 0").count())

        table.manage_snapshots().rollback_to_timestamp(before + 1).commit()
        print("taken back:", total(table.scan()))
        print("history:", len(table.history()), "changes of the head")


def total(scan: icefield.scan.TableScan) -> float:
    return sum(scan.to_arrow()["price"].to_pylist())


if __name__ == "__main__":
    main(sys.argv[1])

"""The changelog of a change of 1 % of a table's rows, next to reading both snapshots and comparing them in pyarrow.

    python benchmarks/bench_changes.py [ROWS]

The rows that change are next to each other, so that few files hold them, or spread over all files.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from bench_scan import rows
from harness import compare, main
from icefield.catalog import Catalog, Table, load_catalog

ROWS = 1_000_000
FILES = 16
NEAR, SPREAD, ON_READ = 5.0, 1.0, 2.5


def run() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as folder:
        catalog = load_catalog("bench", type="sql", uri="sqlite://", warehouse=f"file://{folder}")
        catalog.create_namespace("db")
        data = rows(count)
        near = f"id >= {count // 2} and id < {count // 2 + count // 100}"
        chance = np.random.default_rng(3)
        spread = chance.choice(count, count // 100, replace=False)
        for number, (name, mode, version, floor) in enumerate(
            (
                ("rewritten, changed rows together", "copy-on-write", "2", NEAR),
                ("rewritten, changed rows all over", "copy-on-write", "2", SPREAD),
                ("vectors, changed rows all over", "merge-on-read", "3", ON_READ),
            )
        ):
            table = made(catalog, f"db.t{number}", data, mode, version)
            ids = pa.table({"id": np.sort(spread), "changed": np.full(len(spread), -1.0)})
            if floor == NEAR and mode == "copy-on-write":
                table.update(near, {"amount": -1.0})
            else:
                table.merge(ids, "id").when_matched_update({"amount": pc.field("source", "changed")}).commit()
            before, after = (snapshot.snapshot_id for snapshot in table.snapshots()[-2:])
            scan = table.incremental_changelog_scan(from_snapshot_id_exclusive=before)
            assert scan.count() == 2 * (count // 100) == len(by_pyarrow(table, before, after))
            compare(name, scan.to_arrow, partial(by_pyarrow, table, before, after), floor=floor, runs=3)


def made(catalog: Catalog, name: str, data: pa.Table, mode: str, version: str) -> Table:
    modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    table = catalog.create_table(name, data.schema, properties={"format-version": version, **modes})
    step = -(-data.num_rows // FILES)
    with table.transaction() as tx:
        for start in range(0, data.num_rows, step):
            tx.append(data.slice(start, step))
    return table


def by_pyarrow(table: Table, before: int, after: int) -> pa.Table:
    """Group the rows of both snapshots by all columns, and return the rows that are in only one of them."""
    signed: list[Any] = []
    for snapshot_id, sign in ((before, -1), (after, 1)):
        found = table.scan(snapshot_id=snapshot_id).to_arrow()
        signed.append(found.append_column("sign", pa.repeat(pa.scalar(sign, pa.int8()), found.num_rows)))
    both = pa.concat_tables(signed)
    grouped = both.group_by(both.column_names[:-1]).aggregate([("sign", "sum")])
    return grouped.filter(pc.not_equal(grouped["sign_sum"], 0))


if __name__ == "__main__":
    main(run)

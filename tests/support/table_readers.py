"""Every way to read a table, by name, and two tables to read: an encrypted one and a plain one."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import icefield
import polars as pl
import pyarrow as pa
from encrypted_tables import MASTER, SCHEMA, rows
from icefield.catalog import Catalog
from icefield.scan import read_tasks
from icefield_frames.parts import for_workers, parts_of
from icefield_frames.selection import arrow_schema

MODES = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}


class Pair(NamedTuple):
    """An encrypted table and a plain one, of the same changes."""

    encrypted: icefield.Table
    plain: icefield.Table


def two_tables(catalog: Catalog, **properties: str) -> Pair:
    """Make the tables ``db.e`` and ``db.p``, with deletes, updates, a tag, a branch and statistics."""
    catalog.create_namespace("db")
    given = {"format-version": "3", **MODES, **properties}
    secret = {**given, "encryption.key-id": MASTER}
    made = Pair(
        catalog.create_table("db.e", SCHEMA, partition_spec=["part"], properties=secret),
        catalog.create_table("db.p", SCHEMA, partition_spec=["part"], properties=given),
    )
    for table in made:
        table.append(rows(0))
        table.append(rows(100))
        table.delete("id in (5, 105)")
        table.upsert(rows(150, 100), ["id"])
        table.manage_snapshots().create_tag(table.snapshots()[1].snapshot_id, "two").commit()
        table.manage_snapshots().create_branch(None, "dev").commit()
        table.append(rows(900, 3), branch="dev")
        table.maintenance.compute_partition_stats()
        table.refresh()
    return made


def moved(value: Any) -> Any:
    """The value as another process gets it."""
    return pickle.loads(pickle.dumps(value))


def read_by_parts(scan: Any) -> pa.Table:
    """The rows of a scan that workers without a key service read, as those of Ray, Daft and Dask do."""
    schema = arrow_schema(scan)
    parts = moved(parts_of(scan, schema, at_least=3))
    assert not any("encryption." in name for part in parts for name in _io_of(part).properties)
    return pa.concat_tables([part.table() for part in parts]) if parts else schema.empty_table()


def _io_of(part: Any) -> Any:
    return getattr(part.context, "scan", part.context).io


def read_by_tasks(scan: Any) -> pa.Table:
    """The rows of groups of tasks that workers read."""
    groups = moved([(tasks, for_workers(scan.context)) for tasks in scan.plan_tasks(4)])
    batches = [batch for tasks, context in groups for batch in read_tasks(tasks, context)]
    return pa.Table.from_batches(batches, arrow_schema(scan))


def by_duckdb(scan: Any) -> pa.Table:
    """Rows that DuckDB selects."""
    return scan.to_duckdb("t").sql("SELECT * FROM t WHERE id % 2 = 0").to_arrow_table()


def by_polars(scan: Any) -> pa.Table:
    """Rows that Polars selects."""
    return scan.to_polars().lazy().filter(pl.col("id") < 160).select("id", "part").collect().to_arrow()


def by_polars_limit(scan: Any) -> int:
    """The number of rows that Polars takes at most seven of."""
    return len(scan.to_polars().lazy().limit(7).collect())


def by_datafusion(scan: Any) -> pa.Table:
    """Rows that DataFusion selects."""
    return scan.to_datafusion("t").sql("SELECT id FROM t WHERE part = 'region-1'").to_arrow_table()


def changes(table: icefield.Table, **options: Any) -> Any:
    """A scan of the changes of a table."""
    return table.incremental_changelog_scan(**options)


def first_appends(table: icefield.Table) -> Any:
    """A scan of the rows that the second snapshot appended."""
    first, second = (each.snapshot_id for each in table.snapshots()[:2])
    return table.incremental_append_scan(from_snapshot_id_exclusive=first, to_snapshot_id_inclusive=second)


READERS: dict[str, Callable[[icefield.Table], Any]] = {
    "scan": lambda t: t.scan().to_arrow(),
    "filter": lambda t: t.scan("text = 'confidential-77' or id > 190").to_arrow(),
    "partition filter": lambda t: t.scan("part = 'region-2'").select("id").to_arrow(),
    "limit": lambda t: len(t.scan(limit=13).to_arrow()),
    "batches": lambda t: t.scan().to_arrow_batch_reader().read_all(),
    "dictionaries": lambda t: t.scan().with_dictionaries("part").to_arrow().unify_dictionaries(),
    "count": lambda t: (t.scan().count(), t.scan("id < 50").count()),
    "positions and row ids": lambda t: t.scan("id < 9").select("id", "_row_id", "_pos").to_arrow(),
    "tag": lambda t: t.scan(ref="two").to_arrow(),
    "branch": lambda t: t.scan(ref="dev").to_arrow(),
    "snapshot": lambda t: t.scan(snapshot_id=t.snapshots()[0].snapshot_id).to_arrow(),
    "appended rows": lambda t: first_appends(t).to_arrow(),
    "changes": lambda t: changes(t).to_arrow(),
    "net changes": lambda t: changes(t, net_changes=True).to_arrow(),
    "updates": lambda t: changes(t, identifier_columns=["id"]).to_arrow(),
    "limited changes": lambda t: len(changes(t, limit=17).to_arrow()),
    "tasks": lambda t: read_by_tasks(t.scan("id < 180")),
    "tasks of appends": lambda t: read_by_tasks(first_appends(t)),
    "plan": lambda t: t.scan().plan_arrow().select(["record_count", "partition"]),
    "workers": lambda t: read_by_parts(t.scan("part != 'region-0'")),
    "workers with a limit": lambda t: len(read_by_parts(t.scan(limit=31))),
    "workers with a limit and a filter": lambda t: len(read_by_parts(t.scan("id > 160", limit=31))),
    "workers with a limit of none": lambda t: len(read_by_parts(t.scan(limit=0))),
    "workers of changes": lambda t: read_by_parts(changes(t)),
    "workers of net changes": lambda t: read_by_parts(changes(t, net_changes=True, identifier_columns=["id"])),
    "workers of limited changes": lambda t: len(read_by_parts(changes(t, limit=17))),
    "pandas": lambda t: pa.Table.from_pandas(t.scan().to_pandas(), schema=SCHEMA),
    "polars": lambda t: by_polars(t.scan()),
    "polars with a limit": lambda t: by_polars_limit(t.scan()),
    "duckdb": lambda t: by_duckdb(t.scan()),
    "duckdb of changes": lambda t: by_duckdb(changes(t)),
    "datafusion": lambda t: by_datafusion(t.scan()),
    "data set": lambda t: t.scan().to_dataset().to_table(columns=["id", "text"]),
    "partitions": lambda t: t.inspect.partitions().select(["partition", "record_count", "file_count"]),
    "partition statistics": lambda t: t.inspect.partition_statistics().select(["partition", "data_record_count"]),
    "entries": lambda t: t.inspect.entries().select(["status", "sequence_number"]),
}


def comparable(found: Any) -> Any:
    """The rows without the ids of snapshots, in an order; numbers as they are."""
    if not isinstance(found, pa.Table):
        return found
    kept = [name for name in found.column_names if name != "_commit_snapshot_id"]
    return sorted(map(repr, found.select(kept).to_pylist()))

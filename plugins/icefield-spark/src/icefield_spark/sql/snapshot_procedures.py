"""Procedures that make another snapshot current or describe snapshots, and the registration of tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icefield import Table
from icefield.errors import NoSuchSnapshot

from icefield_spark.sql.adding_files import name_of
from icefield_spark.sql.context import Rows, StatementContext


def register_table(context: StatementContext, given: dict[str, Any]) -> Rows:
    """Register a table by its metadata file."""
    table = context.catalog.register_table(context.names.local(name_of(given["table"])), given["metadata_file"])
    snapshot = table.current_snapshot()
    summary = {} if snapshot is None else snapshot.summary
    return [
        [
            None if snapshot is None else snapshot.snapshot_id,
            int(summary.get("total-records", 0)),
            int(summary.get("total-data-files", 0)),
        ]
    ]


def _current(table: Table) -> int | None:
    snapshot = table.current_snapshot()
    return None if snapshot is None else snapshot.snapshot_id


def moving(change: Callable[[Any, dict[str, Any]], Any]) -> Callable[[StatementContext, Table, dict[str, Any]], Rows]:
    """A procedure that makes another snapshot current."""

    def run(context: StatementContext, table: Table, given: dict[str, Any]) -> Rows:
        before = _current(table)
        with table.manage_snapshots() as update:
            change(update, given)
        return [[before, _current(table)]]

    return run


def cherrypick_snapshot(context: StatementContext, table: Table, given: dict[str, Any]) -> Rows:
    """Apply the changes of a staged snapshot to the current snapshot."""
    with table.manage_snapshots() as update:
        update.cherry_pick(given["snapshot_id"])
    return [[given["snapshot_id"], _current(table)]]


def publish_changes(context: StatementContext, table: Table, given: dict[str, Any]) -> Rows:
    """Publish the changes that were staged under a ``wap.id``."""
    staged = [each.snapshot_id for each in table.snapshots() if each.summary.get("wap.id") == given["wap_id"]]
    with table.manage_snapshots() as update:
        update.publish_changes(given["wap_id"])
    return [[staged[-1] if staged else None, _current(table)]]


def fast_forward(context: StatementContext, table: Table, given: dict[str, Any]) -> Rows:
    """Move a branch forward to the head of another one."""
    before = table.refs().get(given["branch"])
    with table.manage_snapshots() as update:
        update.fast_forward(given["branch"], given["to"])
    after = table.refs()[given["branch"]].snapshot_id
    return [[given["branch"], None if before is None else before.snapshot_id, after]]


def ancestors_of(context: StatementContext, table: Table, given: dict[str, Any]) -> Rows:
    """The ancestors of a snapshot, with the snapshot itself."""
    start = given.get("snapshot_id", _current(table))
    if start is not None and table.snapshot_by_id(start) is None:
        raise NoSuchSnapshot(f"the table has no snapshot {start}", snapshot_id=start)
    return [[each.snapshot_id, each.timestamp_ms] for each in table.metadata.ancestors(start)]

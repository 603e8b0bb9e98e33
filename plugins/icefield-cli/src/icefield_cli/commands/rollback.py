"""Make an earlier snapshot of a table the current one. No file is deleted, and the snapshots in between stay."""

from __future__ import annotations

from icefield_cli.context import Context

NAME = "rollback"


def run(context: Context, table: str, snapshot: int | None, before: int | None, ref: str | None, any: bool) -> None:
    """Run the command."""
    found = context.table(table)
    old = found.current_snapshot()
    with context.changing(NAME):
        change = found.manage_snapshots()
        if before is not None:
            change.rollback_to_timestamp(before)
        elif ref is not None:
            change.set_current_snapshot(ref_name=ref)
        elif any:
            change.set_current_snapshot(snapshot)
        elif snapshot is not None:
            change.rollback_to_snapshot(snapshot)
        change.commit()
    now = context.table(table).current_snapshot()
    ids = {"before": old and str(old.snapshot_id), "snapshot_id": now and now.snapshot_id}
    context.say(f"{table} is at snapshot {ids['snapshot_id']}; it was at {ids['before']}", **ids)

"""Apply the change of a snapshot to main: of a staged snapshot, or of a snapshot of another branch."""

from __future__ import annotations

from icefield_cli.context import Context

NAME = "cherry-pick"


def run(context: Context, table: str, snapshot: int | None, wap_id: str | None) -> None:
    """Run the command."""
    change = context.table(table).manage_snapshots()
    with context.changing(NAME):
        if wap_id is not None:
            change.publish_changes(wap_id)
        elif snapshot is not None:
            change.cherry_pick(snapshot)
        change.commit()
    now = context.table(table).current_snapshot()
    made = None if now is None else now.snapshot_id
    context.say(f"{table} is at snapshot {made}", table=table, snapshot_id=made)

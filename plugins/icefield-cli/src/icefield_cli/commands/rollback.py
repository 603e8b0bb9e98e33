"""Make an earlier snapshot of a table the current one. No file is deleted, and the snapshots in between stay."""

from __future__ import annotations

import click

from icefield_cli.context import Context
from icefield_cli.options import command, flag, id_option, table_argument
from icefield_cli.times import instant_or_age

NAME = "rollback"
_WHERE = ("snapshot", "before", "ref")


@command(NAME, __doc__, exclusive=(_WHERE,), needs=_WHERE, goes_with={"any": ("snapshot",)})
@table_argument
@id_option("--snapshot", "An ancestor of the current snapshot.")
@click.option("--before", type=instant_or_age, metavar="TIME", help="The latest from before a time, or an age.")
@click.option("--ref", metavar="NAME", help="What a branch or tag names, an ancestor or not.")
@flag("--any", "With --snapshot: one that is no ancestor too.")
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

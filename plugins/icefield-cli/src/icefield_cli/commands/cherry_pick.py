"""Take the change of a snapshot over onto main: of one that is staged, or of another branch."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context

NAME = "cherry-pick"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--snapshot", type=int, metavar="ID", help="the snapshot")
    which.add_argument("--wap-id", metavar="ID", help="the one that was staged under this wap.id")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table = context.table(given.table)
    with context.changing(NAME):
        change = table.manage_snapshots()
        if given.wap_id is not None:
            change.publish_changes(given.wap_id)
        else:
            change.cherry_pick(given.snapshot)
        change.commit()
    now = context.table(given.table).current_snapshot()
    made = None if now is None else now.snapshot_id
    context.say(f"{given.table} is at snapshot {made}", table=given.table, snapshot_id=made)

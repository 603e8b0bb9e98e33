"""Make an earlier snapshot of a table the current one. No file is deleted, and the snapshots in between stay."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context
from icefield_cli.times import instant_or_age

NAME = "rollback"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--snapshot", type=int, metavar="ID", help="an ancestor of the current snapshot")
    where.add_argument("--before", type=instant_or_age, metavar="TIME", help="the latest from before a time, or an age")
    where.add_argument("--ref", metavar="NAME", help="what a branch or tag names, an ancestor or not")
    parser.add_argument("--any", action="store_true", help="with --snapshot: one that is no ancestor too")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table = context.table(given.table)
    before = table.current_snapshot()
    with context.changing(NAME):
        change = table.manage_snapshots()
        if given.before is not None:
            change.rollback_to_timestamp(given.before)
        elif given.ref is not None:
            change.set_current_snapshot(ref_name=given.ref)
        elif given.any:
            change.set_current_snapshot(given.snapshot)
        else:
            change.rollback_to_snapshot(given.snapshot)
        change.commit()
    now = context.table(given.table).current_snapshot()
    ids = {"before": before and before.snapshot_id, "snapshot_id": now and now.snapshot_id}
    context.say(f"{given.table} is at snapshot {ids['snapshot_id']}; it was at {ids['before']}", **ids)

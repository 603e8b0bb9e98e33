"""Create a branch of a table; or move, rename or delete one, or change how long expiry keeps it."""

from __future__ import annotations

import argparse

from icefield.transaction import ManageSnapshots

from icefield_cli.commands.references import add_target_options, target_of, target_or_current
from icefield_cli.context import Context, count
from icefield_cli.times import span

NAME = "branch"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")
    parser.add_argument("name", help="the branch")
    add_target_options(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--replace", action="store_true", help="move the branch, wherever it was")
    what.add_argument("--fast-forward", metavar="REF", help="move the branch forward to this branch or tag")
    what.add_argument("--rename", metavar="NEW", help="give it this name")
    what.add_argument("--delete", action="store_true", help="delete the branch")
    what.add_argument("--retain", action="store_true", help="change only how long a branch that is there is kept")
    parser.add_argument("--max-ref-age", type=span, metavar="SPAN", help="how long the branch is kept, such as 7d")
    parser.add_argument("--max-snapshot-age", type=span, metavar="SPAN", help="how long its snapshots are kept")
    parser.add_argument("--min-snapshots", type=count, metavar="N", help="how many are kept whatever their age")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table, name = context.table(given.table), given.name
    made, change = "created", table.manage_snapshots()
    ages = (given.max_ref_age, given.max_snapshot_age, given.min_snapshots)
    if given.delete:
        made = "deleted"
        change.remove_branch(name)
    elif given.rename:
        made = f"renamed to {given.rename}:"
        change.rename_branch(name, given.rename)
    elif given.fast_forward:
        made = "moved"
        change.fast_forward(name, given.fast_forward)
    elif not given.replace and not given.retain:
        change.create_branch(target_of(table, given), name, *ages)
        ages = (None, None, None)
    else:
        made = "moved" if given.replace else "changed"
        if given.replace:
            change.replace_branch(name, target_or_current(table, given))
    if not given.delete and not given.rename:
        _retain(change, name, ages)
    with context.changing(NAME):
        change.commit()
    context.say(f"{made} branch {name} of {given.table}", table=given.table, branch=given.rename or name)


def _retain(change: ManageSnapshots, name: str, ages: tuple[int | None, int | None, int | None]) -> None:
    for setter, value in zip(
        (change.set_max_ref_age_ms, change.set_max_snapshot_age_ms, change.set_min_snapshots_to_keep), ages, strict=True
    ):
        if value is not None:
            setter(name, value)

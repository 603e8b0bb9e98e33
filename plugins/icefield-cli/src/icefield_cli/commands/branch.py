"""Create a branch of a table; or move, rename or delete one, or change how long expiry keeps it."""

from __future__ import annotations

from itertools import product

import click
from icefield.transaction import ManageSnapshots

from icefield_cli.commands import references
from icefield_cli.commands.references import check_there, target_of, target_options, target_or_current, without_target
from icefield_cli.context import Context
from icefield_cli.options import command, count, flag, table_argument
from icefield_cli.times import span

NAME = "branch"
_CHANGES = ("replace", "fast_forward", "rename", "delete", "retain")
_AGES = ("max_ref_age", "max_snapshot_age", "min_snapshots")
_EXCLUSIVE = (
    references.EXCLUSIVE,
    _CHANGES,
    *without_target("fast_forward", "rename", "delete", "retain"),
    *product(("rename", "delete"), _AGES),
)


@command(NAME, __doc__, exclusive=_EXCLUSIVE, goes_with={"retain": _AGES})
@table_argument
@click.argument("name")
@target_options
@flag("--replace", "Move the branch, wherever it was.")
@click.option("--fast-forward", metavar="REF", help="Move the branch forward to this branch or tag.")
@click.option("--rename", metavar="NEW", help="Give it this name.")
@flag("--delete", "Delete the branch.")
@flag("--retain", "Change only how long a branch that is there is kept.")
@click.option("--max-ref-age", type=span, metavar="SPAN", help="How long the branch is kept, such as 7d.")
@click.option("--max-snapshot-age", type=span, metavar="SPAN", help="How long its snapshots are kept.")
@click.option("--min-snapshots", type=count, metavar="N", help="How many are kept whatever their age.")
def run(
    context: Context,
    table: str,
    name: str,
    snapshot: int | None,
    source: str | None,
    replace: bool,
    fast_forward: str | None,
    rename: str | None,
    delete: bool,
    retain: bool,
    max_ref_age: int | None,
    max_snapshot_age: int | None,
    min_snapshots: int | None,
) -> None:
    """Run the command."""
    found = context.table(table)
    made, change = "created", found.manage_snapshots()
    ages = (max_ref_age, max_snapshot_age, min_snapshots)
    if delete:
        made = "deleted"
        change.remove_branch(name)
    elif rename is not None:
        made = f"renamed to {rename}:"
        change.rename_branch(name, rename)
    elif fast_forward is not None:
        made = "moved"
        change.fast_forward(name, fast_forward)
    elif replace:
        made = "moved"
        change.replace_branch(name, target_or_current(found, snapshot, source))
    elif retain:
        made = "changed"
        check_there(found, name, NAME)
    else:
        change.create_branch(target_of(found, snapshot, source), name, *ages)
        ages = (None, None, None)
    _retain(change, name, ages)
    with context.changing(NAME):
        change.commit()
    context.say(f"{made} branch {name} of {table}", table=table, branch=name if rename is None else rename)


def _retain(change: ManageSnapshots, name: str, ages: tuple[int | None, int | None, int | None]) -> None:
    for setter, value in zip(
        (change.set_max_ref_age_ms, change.set_max_snapshot_age_ms, change.set_min_snapshots_to_keep), ages, strict=True
    ):
        if value is not None:
            setter(name, value)

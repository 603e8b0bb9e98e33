"""Create a branch of a table; or move, rename or delete one, or change how long expiry keeps it."""

from __future__ import annotations

from icefield.transaction import ManageSnapshots

from icefield_cli.commands.references import check_there, target_of, target_or_current
from icefield_cli.context import Context

NAME = "branch"


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

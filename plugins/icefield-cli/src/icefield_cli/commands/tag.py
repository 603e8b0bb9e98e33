"""Create a tag, which names a snapshot of a table; or move it, delete it, or change how long expiry keeps it."""

from __future__ import annotations

from icefield_cli.commands.references import check_there, target_or_current
from icefield_cli.context import Context

NAME = "tag"


def run(
    context: Context,
    table: str,
    name: str,
    snapshot: int | None,
    source: str | None,
    replace: bool,
    delete: bool,
    retain: bool,
    max_ref_age: int | None,
) -> None:
    """Run the command."""
    found = context.table(table)
    change = found.manage_snapshots()
    made = "created"
    if delete:
        made = "deleted"
        change.remove_tag(name)
    elif retain:
        made = "changed"
        check_there(found, name, NAME)
    else:
        target = target_or_current(found, snapshot, source)
        if replace:
            made = "moved"
            change.replace_tag(name, target)
        else:
            change.create_tag(target, name)
    if max_ref_age is not None:
        change.set_max_ref_age_ms(name, max_ref_age)
    with context.changing(NAME):
        change.commit()
    context.say(f"{made} tag {name} of {table}", table=table, tag=name)

"""Create a tag, which names a snapshot of a table; or move it, delete it, or change how long expiry keeps it."""

from __future__ import annotations

import click

from icefield_cli.commands import references
from icefield_cli.commands.references import check_there, target_options, target_or_current, without_target
from icefield_cli.context import Context
from icefield_cli.options import command, flag, table_argument
from icefield_cli.times import span

NAME = "tag"
_EXCLUSIVE = (
    references.EXCLUSIVE,
    ("replace", "delete", "retain"),
    *without_target("delete", "retain"),
    ("delete", "max_ref_age"),
)


@command(NAME, __doc__, exclusive=_EXCLUSIVE, goes_with={"retain": ("max_ref_age",)})
@table_argument
@click.argument("name")
@target_options
@flag("--replace", "Move the tag, wherever it was.")
@flag("--delete", "Delete the tag.")
@flag("--retain", "Change only how long a tag that is there is kept.")
@click.option("--max-ref-age", type=span, metavar="SPAN", help="How long the tag is kept, such as 90d.")
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

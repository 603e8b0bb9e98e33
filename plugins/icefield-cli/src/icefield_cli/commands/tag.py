"""Create a tag, which names a snapshot of a table; or move it, delete it, or change how long expiry keeps it."""

from __future__ import annotations

import argparse

from icefield_cli.commands.references import add_target_options, target_or_current
from icefield_cli.context import Context
from icefield_cli.times import span

NAME = "tag"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")
    parser.add_argument("name", help="the tag")
    add_target_options(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--replace", action="store_true", help="move the tag, wherever it was")
    what.add_argument("--delete", action="store_true", help="delete the tag")
    what.add_argument("--retain", action="store_true", help="change only how long a tag that is there is kept")
    parser.add_argument("--max-ref-age", type=span, metavar="SPAN", help="how long the tag is kept, such as 90d")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table, name = context.table(given.table), given.name
    change = table.manage_snapshots()
    made = "created"
    if given.delete:
        made = "deleted"
        change.remove_tag(name)
    elif given.retain:
        made = "changed"
    else:
        target = target_or_current(table, given)
        if given.replace:
            made = "moved"
            change.replace_tag(name, target)
        else:
            change.create_tag(target, name)
    if given.max_ref_age is not None and not given.delete:
        change.set_max_ref_age_ms(name, given.max_ref_age)
    with context.changing(NAME):
        change.commit()
    context.say(f"{made} tag {name} of {given.table}", table=given.table, tag=name)

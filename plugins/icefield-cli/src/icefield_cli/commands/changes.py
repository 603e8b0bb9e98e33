"""Print the rows that the snapshots of a range inserted, deleted and updated, in their order."""

from __future__ import annotations

import argparse

from icefield.expressions import AlwaysTrue

from icefield_cli.commands.scan import counted
from icefield_cli.context import Context, count
from icefield_cli.rows import rows_of
from icefield_cli.times import instant_or_age

NAME = "changes"
_LIMIT = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table, or a metadata file")
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--after", type=int, metavar="ID", help="begin after this snapshot")
    start.add_argument("--from", dest="first", type=int, metavar="ID", help="begin with this snapshot")
    start.add_argument("--since", type=instant_or_age, metavar="TIME", help="begin after a time, or an age such as 1d")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--to", type=int, metavar="ID", help="end with this snapshot; default: the head")
    end.add_argument("--until", type=instant_or_age, metavar="TIME", help="end at a time, or an age such as 1h")
    parser.add_argument("--ref", metavar="NAME", help="a branch or tag; default: main")
    parser.add_argument("--where", metavar="FILTER", help="a filter, such as \"kind in ('a', 'b')\"")
    parser.add_argument("--columns", metavar="NAMES", help="the columns, separated by commas")
    parser.add_argument("--net", action="store_true", help="leave out changes that later ones undid")
    parser.add_argument("--key", metavar="NAMES", help="columns that tell rows apart, so that updates are found")
    some = parser.add_mutually_exclusive_group()
    some.add_argument("--limit", type=count, default=_LIMIT, metavar="N", help=f"the most rows; default: {_LIMIT}")
    some.add_argument("--all", action="store_true", help="every row")
    some.add_argument("--count", action="store_true", help="print the number of changed rows only")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    scan = context.table(given.table).incremental_changelog_scan(
        given.where or AlwaysTrue(),
        _names(given.columns) or ("*",),
        from_snapshot_id_exclusive=given.after,
        from_snapshot_id_inclusive=given.first,
        to_snapshot_id_inclusive=given.to,
        from_timestamp=given.since,
        to_timestamp=given.until,
        ref=given.ref,
        net_changes=given.net,
        identifier_columns=_names(given.key),
        limit=None if given.count or given.all else given.limit,
    )
    if given.count:
        with context.progress("counting"):
            number = scan.count()
        context.record({"rows": number})
        return
    with context.progress("rows", prints=True) as progress, scan.to_arrow_batch_reader() as reader:
        rows = rows_of(counted(reader, progress), scan.projection)
        context.rows(rows, [field.name for field in scan.projection.fields])


def _names(given: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(",")) if given else ()

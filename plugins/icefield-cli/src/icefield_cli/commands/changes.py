"""Print the rows that the snapshots of a range inserted, deleted and updated, in their order."""

from __future__ import annotations

from typing import Any

import click

from icefield_cli import scanning
from icefield_cli.context import Context
from icefield_cli.options import command, filter_of, flag, id_option, names_option, table_argument
from icefield_cli.scanning import limit_of, print_scan, row_options
from icefield_cli.times import instant_or_age


@command("changes", __doc__, exclusive=(("after", "first", "since"), ("to", "until"), scanning.EXCLUSIVE))
@table_argument
@id_option("--after", "Begin after this snapshot.")
@id_option("--from", "Begin with this snapshot.", "first")
@click.option("--since", type=instant_or_age, metavar="TIME", help="Begin after a time, or an age such as 1d.")
@id_option("--to", "End with this snapshot; default: the head.")
@click.option("--until", type=instant_or_age, metavar="TIME", help="End at a time, or an age such as 1h.")
@click.option("--ref", metavar="NAME", help="A branch or tag; default: main.")
@flag("--net", "Leave out changes that later ones undid.")
@names_option("--key", "Columns that tell rows apart, so that updates are found.")
@row_options
def run(
    context: Context,
    table: str,
    after: int | None,
    first: int | None,
    since: int | None,
    to: int | None,
    until: int | None,
    ref: str | None,
    net: bool,
    key: tuple[str, ...],
    **rows: Any,
) -> None:
    """Run the command."""
    scan = context.table(table).incremental_changelog_scan(
        filter_of(rows["where"]),
        rows["columns"] or ("*",),
        from_snapshot_id_exclusive=after,
        from_snapshot_id_inclusive=first,
        to_snapshot_id_inclusive=to,
        from_timestamp=since,
        to_timestamp=until,
        ref=ref,
        net_changes=net,
        identifier_columns=key,
        limit=limit_of(rows),
    )
    print_scan(context, scan, rows)

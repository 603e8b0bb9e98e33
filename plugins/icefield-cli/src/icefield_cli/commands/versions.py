"""The options by which a command reads an earlier version of a table."""

from __future__ import annotations

from typing import Any

import click
from icefield import Table
from icefield.scan import TableScan

from icefield_cli.options import Function, id_option
from icefield_cli.times import instant

EXCLUSIVE = ("snapshot", "ref", "as_of")
_AS_OF = "As it was at a time, such as 2024-01-31T12:00:00+00:00."


def version_options(function: Function) -> Function:
    """Declare ``snapshot``, ``ref`` and ``as_of``, which are ``EXCLUSIVE``."""
    function = click.option("--as-of", type=instant, metavar="TIME", help=_AS_OF)(function)
    function = click.option("--ref", metavar="NAME", help="A branch or tag.")(function)
    declared: Function = id_option("--snapshot", "An earlier snapshot by its id.")(function)
    return declared


def scan_of(table: Table, snapshot: int | None, ref: str | None, as_of: int | None, **options: Any) -> TableScan:
    """A scan of the version that was asked for."""
    scan = table.scan(snapshot_id=snapshot, ref=ref, **options)
    return scan if as_of is None else scan.as_of(as_of)

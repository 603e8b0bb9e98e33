"""The options by which a command reads an earlier version of a table."""

from __future__ import annotations

import argparse
from typing import Any

from icefield import Table
from icefield.scan import TableScan

from icefield_cli.times import instant


def add_version_options(parser: argparse.ArgumentParser) -> None:
    """Declare them; one of them at most may be given."""
    versions = parser.add_mutually_exclusive_group()
    versions.add_argument("--snapshot", type=int, metavar="ID", help="an earlier snapshot by its id")
    versions.add_argument("--ref", metavar="NAME", help="a branch or tag")
    versions.add_argument(
        "--as-of", type=instant, metavar="TIME", help="as it was at a time, such as 2024-01-31T12:00:00+00:00"
    )


def scan_of(table: Table, given: argparse.Namespace, **options: Any) -> TableScan:
    """A scan of the version that was asked for."""
    scan = table.scan(snapshot_id=given.snapshot, ref=given.ref, **options)
    return scan if given.as_of is None else scan.as_of(given.as_of)

"""The options that say which snapshot a branch or a tag is to name."""

from __future__ import annotations

import argparse

from icefield import Table
from icefield.errors import NoSuchSnapshot


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Declare them; one of them at most may be given."""
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--snapshot", type=int, metavar="ID", help="the snapshot; default: the current one")
    target.add_argument("--from", dest="source", metavar="REF", help="the snapshot that this branch or tag names")


def target_of(table: Table, given: argparse.Namespace) -> int | None:
    """The snapshot's id; None where neither option was given."""
    if given.source is None:
        return None if given.snapshot is None else int(given.snapshot)
    found = table.metadata.ref(given.source)
    if found is None:
        known = ", ".join(sorted(table.metadata.refs)) or "none"
        raise NoSuchSnapshot(f"{given.table} has no branch or tag '{given.source}'; it has {known}")
    return found.snapshot_id


def target_or_current(table: Table, given: argparse.Namespace) -> int:
    """The snapshot's id, that of the current one where neither option was given. Raises ``NoSuchSnapshot``."""
    found = target_of(table, given)
    if found is None:
        current = table.current_snapshot()
        if current is None:
            raise NoSuchSnapshot(f"{given.table} has no snapshot yet; give --snapshot or --from")
        return current.snapshot_id
    return found

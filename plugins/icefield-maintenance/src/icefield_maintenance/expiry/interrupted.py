"""The leftovers of an interrupted expiry: it committed, and ended before it deleted all files.

The versions before the current one state the former snapshots. Manifest lists are deleted last, and the list of the
latest snapshot last of all: while this list exists, other files of that expiry may exist, too.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from icefield.errors import IcefieldError
from icefield.metadata import Snapshot, TableMetadata, decode_metadata
from icefield.storage import FileIO

from icefield_maintenance.expiry.unreachable import Gone

_VERSIONS: Final = 16
"""The number of versions to look at. Older leftovers are found as orphan files."""

_log = logging.getLogger(__name__)


def left_behind(io: FileIO, current: TableMetadata, known: Iterable[Snapshot]) -> Gone:
    """The leftovers of expiries before ``current``, as far as the latest versions show them.

    ``known`` are snapshots that are already handled. The earliest expiry comes first, so that its lists are deleted
    before the list by which later runs find all leftovers.
    """
    expiries: list[Gone] = []
    numbers = {one.snapshot_id: one.sequence_number for one in (*known, *current.snapshots)}
    latest = [entry.metadata_file for entry in [*current.metadata_log][-_VERSIONS:]]

    @lru_cache(_VERSIONS // 4)
    def versions(at: int) -> TableMetadata | None:
        return _version(io, latest[at], current)

    def shows_none(at: int) -> bool:
        return current.format_version > 1 and _shows_no_expiry(versions(at), current, numbers)

    at = len(latest)
    while at and not shows_none(0):
        # The versions before an expiry show it, the later ones do not: a binary search reads few of them.
        if shows_none(at - 1):
            at = bisect_left(range(at - 1), True, 1, key=shows_none)
        at -= 1
        before = versions(at)
        if before is None:
            break
        gone = Gone.between(before, current, before.snapshots.positions.keys() - numbers.keys())
        if not gone.snapshots:
            continue
        if not _is_there(io, gone):
            break  # that expiry is complete, and so are all earlier ones
        numbers |= {snapshot.snapshot_id: snapshot.sequence_number for snapshot in gone.snapshots}
        expiries.append(replace(gone, metadata_files=[]))  # later commits deleted them
    found = Gone()
    for gone in reversed(expiries):
        found.add(gone)
    return found


def _version(io: FileIO, location: str, current: TableMetadata) -> TableMetadata | None:
    """An earlier version of the table; None if it cannot be read, or is another table's."""
    try:
        found = decode_metadata(io.read_metadata(location), location)
    except IcefieldError as error:
        _log.info("the version in %s is not looked at: %s", location, error)
        return None
    return found if found.table_uuid == current.table_uuid else None


def _shows_no_expiry(before: TableMetadata | None, current: TableMetadata, numbers: Mapping[int, int]) -> bool:
    """Whether no snapshot but those with these numbers has existed since a version: each new one takes a number."""
    if before is None or before.format_version == 1:
        return False
    later = sum(number > before.last_sequence_number for number in numbers.values())
    made = current.last_sequence_number - before.last_sequence_number
    return later == made and before.snapshots.positions.keys() <= numbers.keys()


def _is_there(io: FileIO, gone: Gone) -> bool:
    last = gone.snapshots[-1].manifest_list
    try:
        return last is not None and io.exists(last)
    except IcefieldError:
        return False

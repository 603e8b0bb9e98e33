"""What an earlier expiry left behind: it committed, and ended before all files were deleted.

The versions before the current one say which snapshots there were. Manifest lists go last, and the one of the latest
snapshot last of all: while it is there, files of that expiry may be, too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from icefield.errors import IcefieldError
from icefield.metadata import TableMetadata, decode_metadata
from icefield.storage import FileIO

from icefield_maintenance.expiry.unreachable import Gone

_VERSIONS: Final = 16
"""How many versions are looked at. What is older is left for a search for orphan files."""

_log = logging.getLogger(__name__)


def left_behind(io: FileIO, current: TableMetadata, known: Iterable[int]) -> Gone:
    """What expired before ``current`` and was not deleted to the end, as far as the latest versions show.

    ``known`` are the snapshots that are dealt with already. What expired first comes first, so that its lists go before
    the list by which later runs find all of it.
    """
    expiries: list[Gone] = []
    seen = set(known) | current.snapshots.positions.keys()
    for entry in reversed([*current.metadata_log][-_VERSIONS:]):
        try:
            location = entry.metadata_file
            before = decode_metadata(io.read_metadata(location), location)
        except IcefieldError as error:
            _log.info("the version in %s is not looked at: %s", entry.metadata_file, error)
            break
        if before.table_uuid != current.table_uuid:
            break
        gone = Gone.between(before, current, before.snapshots.positions.keys() - seen)
        if not gone.snapshots:
            continue
        if not _is_there(io, gone):
            break  # that expiry came to its end, and so did those before it
        seen |= {snapshot.snapshot_id for snapshot in gone.snapshots}
        expiries.append(replace(gone, metadata_files=[]))  # which the commits since then deleted
    found = Gone()
    for gone in reversed(expiries):
        found.add(gone)
    return found


def _is_there(io: FileIO, gone: Gone) -> bool:
    last = gone.snapshots[-1].manifest_list
    try:
        return last is not None and io.exists(last)
    except IcefieldError:
        return False

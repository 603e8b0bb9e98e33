"""A version of a table together with the additional entries in its metadata file.

A service's answer with a table's metadata may leave out snapshots, branches or tags. The table still uses these: their
files must not be taken for orphans.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TypeVar

from icefield.errors import IcefieldError
from icefield.metadata import JsonArray, TableMetadata, decode_metadata
from icefield.storage import FileIO
from icefield.toolkit import without_userinfo

T = TypeVar("T")

_log = logging.getLogger(__name__)


def with_what_is_stored(io: FileIO, metadata: TableMetadata, location: str | None) -> TableMetadata:
    """The version with the snapshots and statistics that only its metadata file at ``location`` names.

    An unreadable file is logged and ignored, since some services do not let clients read it.
    """
    if location is None:
        return metadata
    try:
        stored = decode_metadata(io.read_metadata(location), location)
    except IcefieldError as error:
        _log.info("what %s states is not compared with what the catalog does: %s", without_userinfo(location), error)
        return metadata
    if stored.table_uuid != metadata.table_uuid:
        return metadata
    return replace(
        metadata,
        snapshots=_united(metadata.snapshots, stored.snapshots),
        statistics=_united(metadata.statistics, stored.statistics),
        partition_statistics=_united(metadata.partition_statistics, stored.partition_statistics),
    )


def _united(given: JsonArray[T], stored: JsonArray[T]) -> JsonArray[T]:
    missing = [stored[at] for each, at in stored.positions.items() if each not in given.positions]
    return given.extended(missing) if missing else given

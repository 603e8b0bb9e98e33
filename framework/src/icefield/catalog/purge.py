"""Deleting every file of a table that was dropped."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import pyarrow as pa

from icefield.abc import CommitStrategy
from icefield.errors import IcefieldError
from icefield.manifest import ManifestFile
from icefield.metadata import GC_ENABLED, TableMetadata, get_bool
from icefield.metadata.file_names import version_of
from icefield.scan.planning.reachable import files_of_manifests, manifests_of
from icefield.storage import FileIO, HashedLocations, LocationSet, TableFiles, delete_files
from icefield.storage.allowed import OWNED_ONLY

_AT_ONCE: Final = 8000

_log = logging.getLogger(__name__)


def delete_files_of(io: FileIO, metadata: TableMetadata, metadata_location: str, strategy: CommitStrategy) -> None:
    """Delete the data, the manifests and the metadata of a dropped table.

    Data files stay when ``gc.enabled`` is false, and files of other tables stay. A file that cannot be read
    or deleted is logged and skipped, because the table is already dropped. Metadata is deleted last, so that after a
    crash the remaining files can still be found. The strategy deletes the metadata versions that it published.
    """
    places = HashedLocations(io, metadata.location)
    owned = TableFiles(io, metadata, strategy)
    manifests = manifests_of(io, metadata, metadata.snapshots, places, LocationSet(), lenient=True)
    kept = 0

    def delete(locations: Iterable[str]) -> None:
        nonlocal kept
        remaining = iter(locations)
        while some := [*islice(remaining, _AT_ONCE)]:
            own = owned.of(some)
            kept += len(some) - len(own)
            delete_files(io, own)

    if get_bool(metadata.properties, GC_ENABLED):
        delete(_content(io, places, manifests))
    delete([manifest.manifest_path for manifest in manifests])
    delete([each.manifest_list for each in metadata.snapshots if each.manifest_list is not None])
    delete([entry.statistics_path for entry in metadata.statistics_files])
    versions = [*(entry.metadata_file for entry in metadata.metadata_log), metadata_location]
    delete([location for location in versions if not _is_kept(io, location, strategy)])
    if kept:
        _log.warning(
            "%d files of '%s' stay that are outside of its own folders: another table may need them (%s=false has "
            "them deleted)",
            kept,
            ".".join(strategy.table),
            OWNED_ONLY,
        )
    try:
        strategy.purge()
    except IcefieldError as error:
        _log.warning("could not delete every version of a dropped table: %s", error)


def _content(io: FileIO, places: HashedLocations, manifests: Sequence[ManifestFile]) -> Iterator[str]:
    """Every data and delete file without duplicates, including files that a snapshot deleted."""
    seen = LocationSet()
    for locations, _ in files_of_manifests(io, manifests, live=False):
        new = seen.add_new(places.hashes(locations))
        yield from locations.take(pa.array(new)).to_pylist()


def _is_kept(io: FileIO, location: str, strategy: CommitStrategy) -> bool:
    """Whether a metadata file is a version that the table's strategy published and deletes itself."""
    if strategy.folder is None or version_of(location) is None:
        return False
    try:
        return io.resolve(location).rpartition("/")[0] == io.resolve(strategy.folder)
    except IcefieldError:
        return False

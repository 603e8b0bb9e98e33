"""The files that some version of a table refers to, as hashes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
from icefield.abc import WorkRunner
from icefield.engine import files_of_manifests, manifests_of
from icefield.errors import InvalidArgument
from icefield.metadata import TableMetadata
from icefield.storage import FileIO, HashedLocations, LocationSet, Mask, path_hashes
from icefield.toolkit import without_userinfo

from icefield_maintenance.orphans.prefixes import EqualPrefixes, path_of
from icefield_maintenance.stored_version import with_what_is_stored

PrefixMismatch = Literal["error", "ignore", "delete"]


@dataclass(slots=True)
class ReferencedFiles:
    """The files of a table, by their resolved locations, and by their paths without scheme and authority."""

    io: FileIO
    places: HashedLocations
    prefixes: EqualPrefixes
    runner: WorkRunner | None = None
    _held: LocationSet = field(default_factory=LocationSet)
    _paths: LocationSet = field(default_factory=LocationSet)
    _manifests: LocationSet = field(default_factory=LocationSet)
    _lists: set[str] = field(default_factory=set)

    def add(self, metadata: TableMetadata, metadata_location: str | None) -> None:
        """Add all files that a version refers to, beside the files of earlier calls.

        Raises if a manifest cannot be read. After a failure another version can be added.

        A file that only entries with the status DELETED name belongs to no version: an expiry that ended early has left
        it. A version that needs the file has a live entry for it.
        """
        metadata = with_what_is_stored(self.io, metadata, metadata_location)
        named = [entry.metadata_file for entry in metadata.metadata_log]
        named += [metadata_location] if metadata_location else []
        named += [entry.statistics_path for entry in metadata.statistics_files]
        new = [each for each in metadata.snapshots if (each.manifest_list or str(each.snapshot_id)) not in self._lists]
        # Manifests are noted only after their files: after a failure, a call for a newer version must read them again.
        seen = self._manifests.copy()
        manifests = manifests_of(self.io, metadata, new, self.places, seen, lenient=False)
        named += [manifest.manifest_path for manifest in manifests]
        for locations, _ in files_of_manifests(self.io, manifests, live=True, lenient=False, runner=self.runner):
            self._note(locations)
        self._lists.update(each.manifest_list or str(each.snapshot_id) for each in new)
        named += [each.manifest_list for each in new if each.manifest_list]
        self._note(pa.array(named, pa.string()))
        self._manifests = seen

    def orphans(self, batch: pa.RecordBatch, mismatch: PrefixMismatch) -> pa.RecordBatch:
        """The files of a listing that belong to no version. Raises ``InvalidArgument`` for a doubtful file."""
        places = self._canonical(batch.column(0))
        free = ~self._held.has(path_hashes(places))
        if mismatch != "delete" and free.any():
            doubtful = free & self._paths.has(path_hashes(path_of(places)))
            if doubtful.any() and mismatch == "error":
                self._refuse(batch, doubtful)
            free &= ~doubtful
        return batch.filter(pa.array(free))

    def place_of(self, location: str) -> str:
        """One string for all locations of a file."""
        found: str = self._canonical(pa.array([location], pa.string()))[0].as_py()
        return found

    def _note(self, locations: pa.StringArray) -> None:
        if len(locations):
            places = self._canonical(locations)
            self._held.add_new(path_hashes(places))
            self._paths.add_new(path_hashes(path_of(places)))

    def _canonical(self, locations: pa.StringArray) -> pa.StringArray:
        return self.places.column(self.prefixes.equal(locations))

    def _refuse(self, batch: pa.RecordBatch, doubtful: Mask) -> None:
        first = without_userinfo(batch.column(0)[int(np.flatnonzero(doubtful)[0])].as_py())
        raise InvalidArgument(
            f"{int(doubtful.sum())} files such as {first} have the path of a file of the table under another scheme or "
            "authority; say which are the same by equal_schemes and equal_authorities, or what to do with them by "
            "prefix_mismatch: 'ignore' leaves them, 'delete' takes them for orphans"
        )

"""The files that only expired snapshots refer to, found in one pass over each manifest.

A manifest of expired snapshots only is read for its live files. Each of these files may still be live in a kept
snapshot through another manifest: manifests are merged and rewritten, and a staged snapshot is published with new ones.
So the manifests of kept snapshots are read as well, the latest first, until no candidate is left. A kept manifest is
read even if it is also in an expired snapshot, since a file may be listed twice. A writer that adds a file twice by
mistake and rolls back leaves the file in a kept and in an expired manifest.

If no manifest expires, as after appends that keep theirs, no manifest is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from icefield.abc import WorkRunner
from icefield.engine import FileKind, Kinds, files_of_manifests, manifests_of
from icefield.manifest import ManifestFile
from icefield.metadata import METADATA_DELETE_AFTER_COMMIT, EncryptedKey, Snapshot, TableMetadata, get_bool
from icefield.storage import FileIO, HashedLocations, LocationSet, TableFiles, folders_in

from icefield_maintenance.candidates import DeletionCandidates
from icefield_maintenance.expiry.succession import Succession

_MOST_FOLDERS: Final = 100


@dataclass(frozen=True, slots=True)
class Gone:
    """The references of a version that a later version does not have."""

    snapshots: list[Snapshot] = field(default_factory=list)
    statistics: list[str] = field(default_factory=list)
    partition_statistics: list[str] = field(default_factory=list)
    metadata_files: list[str] = field(default_factory=list)
    keys: list[EncryptedKey] = field(default_factory=list)

    @classmethod
    def between(cls, before: TableMetadata, after: TableMetadata, wanted: Iterable[int] | None = None) -> Gone:
        """Compare two versions; ``wanted`` limits the snapshots, all of ``before`` by default."""
        ids = set(before.snapshots.positions if wanted is None else wanted) - after.snapshots.positions.keys()
        logged = {entry.metadata_file for entry in after.metadata_log}
        deletes = get_bool(after.properties, METADATA_DELETE_AFTER_COMMIT)
        return cls(
            [before.snapshots[at] for each, at in before.snapshots.positions.items() if each in ids],
            [each.statistics_path for each in before.statistics if each.snapshot_id in ids],
            [each.statistics_path for each in before.partition_statistics if each.snapshot_id in ids],
            [e.metadata_file for e in before.metadata_log if deletes and e.metadata_file not in logged],
            [key for key in before.encryption_keys if not after.encryption_keys.has(key.key_id)],
        )

    def add(self, other: Gone) -> None:
        """Add the references of another, each snapshot once."""
        known = {snapshot.snapshot_id for snapshot in self.snapshots}
        self.snapshots.extend(each for each in other.snapshots if each.snapshot_id not in known)
        self.statistics.extend(other.statistics)
        self.partition_statistics.extend(other.partition_statistics)
        self.metadata_files.extend(other.metadata_files)
        self.keys.extend(each for each in other.keys if each not in self.keys)

    def __bool__(self) -> bool:
        return bool(self.snapshots or self.statistics or self.partition_statistics or self.metadata_files)


@dataclass(slots=True)
class KeptFiles:
    """Files that are kept because they are not the table's own: their number, and some of their folders."""

    files: int = 0
    folders: set[str] = field(default_factory=set)

    def add(self, locations: pa.StringArray) -> None:
        """Count files."""
        self.files += len(locations)
        if len(self.folders) < _MOST_FOLDERS:
            self.folders.update(folders_in(locations).unique().to_pylist()[: _MOST_FOLDERS - len(self.folders)])


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Unreachable files: ``content``, which manifests listed, and ``naming``, metadata that is deleted after it."""

    content: DeletionCandidates
    naming: DeletionCandidates
    kept: KeptFiles = field(default_factory=KeptFiles)

    def keep_others(self, owned: TableFiles) -> None:
        """Remove the files that are not the table's own from the candidates, and count them."""
        for candidates in (self.content, self.naming):
            for locations, _ in candidates.left():
                others = locations.filter(pa.array(~owned.mask(locations)))
                if len(others):
                    candidates.protect(others)
                    self.kept.add(others)

    def batches(self) -> Iterator[tuple[pa.StringArray, Kinds]]:
        """The files with their kinds, in the order in which they are to be deleted."""
        yield from self.content.left()
        yield from self.naming.left()

    def __bool__(self) -> bool:
        return bool(len(self.content) or len(self.naming))

    def counts(self) -> npt.NDArray[np.int64]:
        """How many files there are of each kind."""
        return self.content.counts() + self.naming.counts()


def unreachable(
    io: FileIO, kept: TableMetadata, gone: Gone, metadata_location: str | None, runner: WorkRunner | None = None
) -> Unreachable:
    """The files that only ``gone`` refers to.

    ``metadata_location`` is the metadata file of ``kept``. ``runner`` reads manifests where they are large.
    Unreadable metadata of an expired snapshot is logged, and its files are left. Raises ``FileMissing`` and
    ``InvalidMetadata`` for unreadable metadata of a kept snapshot, since its references are then unknown.
    """
    places = HashedLocations(io, kept.location)
    found = Unreachable(DeletionCandidates(places), DeletionCandidates(places))
    if not gone:
        return found
    seen = LocationSet()
    steps = Succession(gone.snapshots, kept.snapshots)
    kept_manifests = manifests_of(io, kept, kept.snapshots, places, seen, lenient=False, note=steps.note)
    with_keys = replace(kept, encryption_keys=kept.encryption_keys.extended(gone.keys)) if gone.keys else kept
    doomed = manifests_of(io, with_keys, gone.snapshots, places, seen, lenient=True, note=steps.note)
    holding = [one for one in steps.losing(doomed, places) if _may_hold_files(one)]
    for locations, kinds in files_of_manifests(io, holding, live=True, runner=runner):
        found.content.add(locations, kinds)
    naming = found.naming
    naming.add_all(gone.statistics, FileKind.STATISTICS)
    naming.add_all(gone.partition_statistics, FileKind.PARTITION_STATISTICS)
    naming.add_all(gone.metadata_files, FileKind.METADATA)
    naming.add_all([manifest.manifest_path for manifest in doomed], FileKind.MANIFEST)
    lists = [snapshot.manifest_list for snapshot in gone.snapshots if snapshot.manifest_list is not None]
    naming.add_all(lists, FileKind.MANIFEST_LIST)
    in_use = _metadata_files(kept, kept_manifests, metadata_location)
    naming.protect(in_use)
    if len(found.content):
        found.content.protect(in_use)
        _protect_live_files(io, found.content, kept_manifests, runner)
    return found


def _metadata_files(
    kept: TableMetadata, manifests: Sequence[ManifestFile], metadata_location: str | None
) -> pa.StringArray:
    named = [manifest.manifest_path for manifest in manifests]
    named += [snapshot.manifest_list for snapshot in kept.snapshots if snapshot.manifest_list is not None]
    named += [each.statistics_path for each in kept.statistics_files]
    named += [entry.metadata_file for entry in kept.metadata_log]
    if metadata_location is not None:
        named.append(metadata_location)
    return pa.array(named, pa.string())


def _protect_live_files(
    io: FileIO, content: DeletionCandidates, manifests: Sequence[ManifestFile], runner: WorkRunner | None
) -> None:
    # The latest manifests, from merges and rewrites, list most of the candidates.
    order = sorted(manifests, key=lambda manifest: manifest.sequence_number, reverse=True)
    holding = [one for one in order if _may_hold_files(one)]
    for locations, _ in files_of_manifests(io, holding, live=True, lenient=False, kinds=False, runner=runner):
        content.protect(locations)
        if not len(content):
            return


def _may_hold_files(manifest: ManifestFile) -> bool:
    return manifest.has_added_files or manifest.has_existing_files

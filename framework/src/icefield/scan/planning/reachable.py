"""The files that snapshots refer to: manifest lists, manifests, data and delete files, without duplicates.

Both snapshot expiry and dropping a table with ``purge`` use it to find the files to delete.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.abc import Attempt, Work, WorkRunner
from icefield.base.concurrency import map_ahead
from icefield.base.secrets import without_userinfo
from icefield.errors import IcefieldError, printable
from icefield.manifest import (
    DataFileContent,
    ManifestEntries,
    ManifestFile,
    ManifestList,
    ManifestReader,
    ManifestRequest,
    read_manifest_list,
)
from icefield.manifest import schemas as f
from icefield.manifest.manifest_list import PATH
from icefield.metadata import Snapshot, TableMetadata
from icefield.scan.deletes.targets import vectors
from icefield.scan.planning.manifest_reads import in_lots, manifest_groups
from icefield.scan.planning.matching import run_in_lots
from icefield.storage import FileIO, HashedLocations, Hashes, LocationSet
from icefield.storage.deleting import is_remote
from icefield.types import StructType

Kinds = npt.NDArray[np.uint8]


class FileKind(IntEnum):
    """The kinds of a table's files, in the order of deletion.

    A file that names others is deleted after them, so that the remaining files can still be found after a crash.
    """

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2
    DELETION_VECTORS = 3
    STATISTICS = 4
    PARTITION_STATISTICS = 5
    METADATA = 6
    MANIFEST = 7
    MANIFEST_LIST = 8

    @property
    def label(self) -> str:
        """The kind in lower case, with dashes: ``position-deletes``."""
        return self.name.lower().replace("_", "-")


CONTENT_KINDS: Final = (
    FileKind.DATA,
    FileKind.POSITION_DELETES,
    FileKind.EQUALITY_DELETES,
    FileKind.DELETION_VECTORS,
)
"""The kinds of files that manifests list."""

_PATHS: Final = ManifestRequest(frozenset({f.STATUS, f.FILE_PATH}))
_PATHS_AND_KINDS: Final = ManifestRequest(frozenset({f.STATUS, f.FILE_PATH, f.CONTENT, f.FILE_FORMAT}))
_ROWS_TOGETHER: Final = 1 << 14
_NO_PARTITION: Final = StructType()

_log = logging.getLogger(__name__)


def manifests_of(
    io: FileIO,
    metadata: TableMetadata,
    snapshots: Iterable[Snapshot],
    places: HashedLocations,
    seen: LocationSet,
    *,
    lenient: bool,
    note: Callable[[Snapshot, ManifestList, Hashes], None] | None = None,
) -> list[ManifestFile]:
    """The manifests of snapshots, without manifests in ``seen``, without duplicates and without partition summaries.

    ``note`` receives each list that was read, with the hashes of its manifests.
    Raises ``FileMissing``, ``InvalidMetadata``; a list that cannot be read is logged and left out when ``lenient``.
    """
    found: list[ManifestFile] = []
    lots = in_lots(_manifest_lists(io, metadata, snapshots, lenient), lambda each: len(each[1]), _ROWS_TOGETHER)
    for lists in lots:
        # Hash them together, because many short columns take several times as long.
        hashes = places.hashes(pa.concat_arrays([listed.columns[PATH] for _, listed in lists]))
        new = seen.add_new(hashes)
        ends = np.cumsum([len(listed) for _, listed in lists])
        cuts = np.searchsorted(new, ends)
        for (snapshot, listed), end, rows in zip(lists, ends, np.split(new, cuts[:-1]), strict=True):
            start = end - len(listed)
            found += listed.select(rows - start, summaries=False)
            if note is not None:
                note(snapshot, listed, hashes[start:end])
    return found


def _manifest_lists(
    io: FileIO, metadata: TableMetadata, snapshots: Iterable[Snapshot], lenient: bool
) -> Iterator[tuple[Snapshot, ManifestList]]:
    def read(snapshot: Snapshot) -> tuple[Snapshot, ManifestList | IcefieldError]:
        try:
            return snapshot, read_manifest_list(io, snapshot, metadata, summaries=False)
        except IcefieldError as error:
            return snapshot, error

    # Threads overlap the requests to a remote store; on local disks they would only delay the decoding thread.
    workers = io.workers(waiting=True) if is_remote(io, metadata.location) else 1
    for snapshot, found in map_ahead(snapshots, read, workers):
        try:
            if isinstance(found, IcefieldError):
                raise found
            decoded = found.columns
        except IcefieldError as error:
            if not lenient:
                raise
            _log.warning("cannot list the files of snapshot %d: %s", snapshot.snapshot_id, error)
            continue
        if decoded:
            yield snapshot, found


def files_of_manifests(
    io: FileIO,
    manifests: Sequence[ManifestFile],
    *,
    live: bool,
    lenient: bool = True,
    kinds: bool = True,
    runner: WorkRunner | None = None,
) -> Iterator[tuple[pa.StringArray, Kinds]]:
    """The files of manifests with their kinds: only live files, or also files that are marked as deleted.

    With ``lenient``, a manifest that cannot be read is logged and skipped. Without ``kinds``, every kind is 0.
    ``runner`` reads large manifests.
    """
    shared = run_in_lots(ListFiles(io, live, lenient, kinds), manifests, runner)
    if shared is not None:
        for found in shared:
            yield from found
        return
    for group in _groups(io, manifests, _PATHS_AND_KINDS if kinds else _PATHS, lenient=lenient):
        parts = [part.filter(part.live()) for part in group] if live else group
        yield pa.concat_arrays([part.column(f.FILE_PATH) for part in parts]), np.concatenate([*map(_kinds, parts)])


@dataclass(frozen=True, slots=True)
class ListFiles(Work[Sequence[ManifestFile], list[tuple[pa.StringArray, Kinds]]]):
    """Lists the files of lots of manifests; see ``files``."""

    io: FileIO
    live: bool
    lenient: bool
    kinds: bool

    def do(self, item: Sequence[ManifestFile], attempt: Attempt) -> list[tuple[pa.StringArray, Kinds]]:
        """The locations and kinds of a lot."""
        found = [*files_of_manifests(self.io, item, live=self.live, lenient=self.lenient, kinds=self.kinds)]
        # Copy the arrays, because pickling a slice would copy its whole buffer.
        return [(each.take(pa.array(np.arange(len(each)))), kinds) for each, kinds in found]


def _groups(
    io: FileIO, manifests: Sequence[ManifestFile], request: ManifestRequest, *, lenient: bool
) -> Iterator[list[ManifestEntries]]:
    # Manifests of one spec are decoded together.
    left = sorted(manifests, key=lambda manifest: manifest.partition_spec_id) if lenient else [*manifests]
    reader = ManifestReader(io, remember=False)
    while left:
        done = 0
        try:
            # Partitions are not read and need no type, so that an unknown spec does no harm.
            for group in manifest_groups(reader, [(one, _NO_PARTITION) for one in left], request):
                done += len(group)
                yield group
        except IcefieldError as error:
            if not lenient:
                raise
            where = printable(without_userinfo(left[done].manifest_path))
            _log.warning("cannot list the files of manifest %s: %s", where, error)
            done += 1
        left = left[done:]


def _kinds(part: ManifestEntries) -> Kinds:
    contents = np.asarray(part.column(f.CONTENT))
    kinds = contents.astype(np.uint8)
    if contents.any():
        kinds[vectors(part.column(f.FILE_FORMAT)) & (contents == DataFileContent.POSITION_DELETES)] = (
            FileKind.DELETION_VECTORS
        )
    return kinds

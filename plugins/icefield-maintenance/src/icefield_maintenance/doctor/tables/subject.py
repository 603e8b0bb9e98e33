"""The table that is examined: its metadata, and the manifests at the heads of its branches and tags."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from icefield import manifest as f
from icefield.errors import IcefieldError
from icefield.manifest import (
    ALL_COLUMNS,
    DataFile,
    DataFileContent,
    EntryStatus,
    ManifestEntries,
    ManifestFile,
    ManifestList,
    read_manifest,
    read_manifest_list,
)
from icefield.metadata import Snapshot, TableMetadata
from icefield.storage import FileIO, Hashes, LocationSet, path_hashes
from icefield.types import StructType

FILE_COLUMNS: Final = frozenset(
    {
        f.STATUS,
        f.CONTENT,
        f.FILE_PATH,
        f.FILE_FORMAT,
        f.PARTITION,
        f.RECORD_COUNT,
        f.FILE_SIZE,
        f.FIRST_ROW_ID,
        f.CONTENT_OFFSET,
    }
)
"""The columns that several groups of rules read. All of them read the same, so that the cache serves the next group."""

Kind = Callable[[ManifestEntries], npt.NDArray[Any]]
"""A function that returns the mask of the entries of one kind."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One version of a table. ``sample`` is the number of files to open; None for all."""

    metadata: TableMetadata
    io: FileIO
    metadata_location: str
    sample: int | None = 16
    refs: tuple[str, ...] | None = None
    """The branches and tags to examine, by their heads; None: all of them."""

    def heads(self) -> list[Snapshot]:
        """The snapshot of each branch and tag, each once, the snapshot of ``main`` first."""
        refs = self.metadata.refs if self.refs is None else {name: self.metadata.refs[name] for name in self.refs}
        numbers = [ref.snapshot_id for ref in refs.values()]
        current = self.metadata.current_snapshot_id
        if current is not None and (self.refs is None or current in numbers):
            numbers.insert(0, current)
        found = (self.metadata.snapshot_by_id(number) for number in dict.fromkeys(numbers))
        return [snapshot for snapshot in found if snapshot is not None]

    def manifests(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot; none if its list cannot be read, which ``manifest-lists`` reports."""
        try:
            return self.manifest_list(snapshot).manifests
        except IcefieldError:
            return ()

    def manifest_list(self, snapshot: Snapshot) -> ManifestList:
        """The manifest list of a snapshot. Raises ``IcefieldError`` if it is gone; a damaged list raises when used."""
        return read_manifest_list(self.io, snapshot, self.metadata)

    def claims(self) -> list[list[ManifestFile]]:
        """The manifests of all heads: for each, its different entries in lists, the entry of the first head first.

        Equal entries count once. Usually all entries of a manifest are equal, since each list copies them from the list
        before it.
        """
        found: dict[str, list[ManifestFile]] = {}
        for head in self.heads():
            for manifest in self.manifests(head):
                said = found.setdefault(manifest.manifest_path, [])
                if manifest not in said:
                    said.append(manifest)
        return list(found.values())

    def head_manifests(self) -> list[ManifestFile]:
        """The manifests of all heads, each once, by its entry in the first head that lists it."""
        return [said[0] for said in self.claims()]

    def entries(self, manifest: ManifestFile, columns: frozenset[int] = ALL_COLUMNS) -> ManifestEntries:
        """The entries of a manifest. Raises ``IcefieldError`` if the manifest cannot be read."""
        return read_manifest(self.io, manifest, self.partition_type(manifest.partition_spec_id), columns=columns)

    def readable(self, columns: frozenset[int] = ALL_COLUMNS) -> Iterator[ManifestEntries]:
        """The entries of the heads' manifests. Unreadable manifests are left out, as another check reports them."""
        for manifest in self.head_manifests():
            try:
                yield self.entries(manifest, columns)
            except IcefieldError:
                continue

    def data_files(self) -> list[DataFile]:
        """The live data files of the heads; equal entries of a file count once."""
        return [*self.files(is_data)]

    def files(
        self, kind: Kind, most: int | None = None, manifests: Collection[ManifestFile] | None = None
    ) -> Iterator[DataFile]:
        """The live files of one kind in some manifests, by default those of the heads; equal entries count once.

        At most ``most`` files are chosen, spread evenly from the first to the last; each comes with all its entries.
        Only the hashes of all files are held in memory.
        """
        among = self.head_manifests() if manifests is None else manifests
        held, starts = bytearray(), [0]
        for manifest in among:
            held += self._identities(manifest, kind).data
            starts.append(len(held) // np.uint64().nbytes)
        every = np.frombuffer(held, np.uint64)
        chosen, repeated = _choice(every, most)
        said: dict[int, list[DataFile]] = {}
        for manifest, (start, end) in zip(among, pairwise(starts), strict=True):
            hashes = every[start:end]
            is_chosen = np.ones(len(hashes), bool) if chosen is None else chosen.has(hashes)
            if not is_chosen.any():
                continue
            try:
                entries = _live(self.entries(manifest), kind).filter(is_chosen)
            except IcefieldError:
                continue
            some = hashes[is_chosen]
            for file, number, again in zip(
                entries.data_files(), some.tolist(), repeated.has(some).tolist(), strict=True
            ):
                if not again or _is_new(file, said.setdefault(number, [])):
                    yield file

    def _identities(self, manifest: ManifestFile, kind: Kind) -> Hashes:
        try:
            return _hashes(_live(self.entries(manifest, FILE_COLUMNS), kind))
        except IcefieldError:
            return np.zeros(0, np.uint64)

    def partition_type(self, spec_id: int) -> StructType:
        """The partition tuple of a spec. Raises ``IcefieldError`` for a spec that the table does not have."""
        spec = self.metadata.spec_by_id(spec_id)
        return spec.partition_type(self.metadata.schema(), self.metadata.schemas)


def is_data(entries: ManifestEntries) -> npt.NDArray[Any]:
    """The mask of data files."""
    mask: npt.NDArray[Any] = np.asarray(entries.column(f.CONTENT)) == DataFileContent.DATA
    return mask


def is_vector(entries: ManifestEntries) -> npt.NDArray[Any]:
    """The mask of deletion vectors."""
    positions = np.asarray(entries.column(f.CONTENT)) == DataFileContent.POSITION_DELETES
    mask: npt.NDArray[Any] = positions & np.asarray(pc.equal(entries.column(f.FILE_FORMAT), "puffin"))
    return mask


def is_delete_file(entries: ManifestEntries) -> npt.NDArray[Any]:
    """The mask of delete files other than deletion vectors."""
    mask: npt.NDArray[Any] = ~(is_data(entries) | is_vector(entries))
    return mask


def _live(entries: ManifestEntries, kind: Kind) -> ManifestEntries:
    return entries.filter((entries.status() != EntryStatus.DELETED) & kind(entries))


def _hashes(entries: ManifestEntries) -> Hashes:
    """A hash of each file; of each vector, since many vectors may be in one file."""
    hashes = path_hashes(entries.column(f.FILE_PATH))
    offsets = entries.column(f.CONTENT_OFFSET)
    if offsets.null_count < len(offsets):
        hashes = hashes ^ path_hashes(pc.fill_null(offsets.cast(pa.string()), ""))
    return hashes


def _choice(hashes: Hashes, most: int | None) -> tuple[LocationSet | None, LocationSet]:
    """At most ``most`` of the files, spread evenly, or None for all; and the files with more than one entry."""
    ordered, repeated = np.sort(hashes), LocationSet()
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    repeated.add_new(again)
    count = len(ordered) - len(again)
    del ordered
    if most is None or count <= most:
        return None, repeated
    later = repeated.has(hashes)
    rows = np.flatnonzero(later)
    later[rows[np.unique(hashes[rows], return_index=True)[1]]] = False
    places = np.linspace(0, count - 1, num=max(most, 0)).round().astype(np.int64)
    chosen = LocationSet()
    chosen.add_new(hashes[np.flatnonzero(~later)[places]])
    return chosen, repeated


def _is_new(file: DataFile, said: list[DataFile]) -> bool:
    """Whether no entry of the file says the same; adds the entry to ``said`` then."""
    # An upgrade assigns row ids to files that older heads list without row ids.
    if any(replace(file, first_row_id=each.first_row_id) == each for each in said):
        return False
    said.append(file)
    return True

"""The table that is examined: its metadata, and the manifests at the heads of its branches and tags."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
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
from icefield.storage import FileIO
from icefield.types import StructType


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

    def entries(self, manifest: ManifestFile) -> ManifestEntries:
        """The entries of a manifest, with all columns. Raises ``IcefieldError`` if the manifest cannot be read."""
        return read_manifest(self.io, manifest, self.partition_type(manifest.partition_spec_id), columns=ALL_COLUMNS)

    def readable(self) -> Iterator[ManifestEntries]:
        """The entries of the heads' manifests. Unreadable manifests are left out, as another check reports them."""
        for manifest in self.head_manifests():
            try:
                yield self.entries(manifest)
            except IcefieldError:
                continue

    def data_files(self) -> list[DataFile]:
        """The live data files of the heads; equal entries of a file count once."""
        files: dict[str, list[DataFile]] = {}
        for entries in self.readable():
            live = entries.status() != EntryStatus.DELETED
            is_data = np.asarray(entries.column(f.CONTENT)) == DataFileContent.DATA
            for file in entries.filter(live & is_data).data_files():
                said = files.setdefault(file.file_path, [])
                # An upgrade assigns row ids to files that older heads list without row ids.
                if not any(replace(file, first_row_id=each.first_row_id) == each for each in said):
                    said.append(file)
        return [file for said in files.values() for file in said]

    def partition_type(self, spec_id: int) -> StructType:
        """The partition tuple of a spec. Raises ``IcefieldError`` for a spec that the table does not have."""
        spec = self.metadata.spec_by_id(spec_id)
        return spec.partition_type(self.metadata.schema(), self.metadata.schemas)

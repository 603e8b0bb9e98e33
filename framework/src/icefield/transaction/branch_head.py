"""The files at the head of a branch, as an action finds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from icefield.base.concurrency import lazy
from icefield.manifest.columns import PLAN_COLUMNS
from icefield.manifest.entries import ManifestEntries
from icefield.manifest.manifest_file import ManifestContent, ManifestFile
from icefield.manifest.manifest_list import ManifestList, read_manifest_list
from icefield.manifest.reader import ManifestReader, ManifestRequest, read_manifest
from icefield.manifest.schemas import stored_partition_type
from icefield.manifest.statistics import StatisticsRequest
from icefield.metadata import TableMetadata
from icefield.metadata.snapshots import Snapshot
from icefield.partitioning import PartitionSpec
from icefield.scan.manifest_reads import manifest_groups
from icefield.storage import FileIO
from icefield.types import StructType

_NO_STATISTICS: StatisticsRequest = {}


class Head:
    """A snapshot of the base, and its manifests; everything is read on first use."""

    def __init__(self, metadata: TableMetadata, snapshot: Snapshot | None, io: FileIO) -> None:
        self.metadata = metadata
        self.snapshot = snapshot
        self.io = io
        self._types: dict[int, StructType] = {}

    @lazy
    def manifest_list(self) -> ManifestList | None:
        """The snapshot's manifest list, or None when there is no snapshot."""
        return None if self.snapshot is None else read_manifest_list(self.io, self.snapshot, self.metadata)

    @property
    def manifests(self) -> tuple[ManifestFile, ...]:
        """Every manifest, in the order of the list."""
        return () if self.manifest_list is None else self.manifest_list.manifests

    def live(self, content: ManifestContent = ManifestContent.DATA) -> list[tuple[int, ManifestFile]]:
        """The manifests of a content that may hold live files, each with its position in the list."""
        return [
            (position, manifest)
            for position, manifest in enumerate(self.manifests)
            if manifest.content is content and (manifest.has_added_files or manifest.has_existing_files)
        ]

    def entries(
        self,
        manifest: ManifestFile,
        columns: Iterable[int] = PLAN_COLUMNS,
        statistics: StatisticsRequest = _NO_STATISTICS,
    ) -> ManifestEntries:
        """The entries of a manifest, with the requested statistics of single fields."""
        kind = self.partition_type(manifest.partition_spec_id)
        return read_manifest(self.io, manifest, kind, columns=columns, statistics=statistics)

    def read(
        self,
        manifests: Sequence[ManifestFile],
        columns: Iterable[int] = PLAN_COLUMNS,
        statistics: StatisticsRequest = _NO_STATISTICS,
    ) -> Iterator[ManifestEntries]:
        """The entries of several manifests, in their order, read ahead by threads."""
        typed = [(one, self.partition_type(one.partition_spec_id)) for one in manifests]
        request = ManifestRequest(frozenset(columns), statistics)
        for group in manifest_groups(ManifestReader(self.io), typed, request):
            yield from group

    def spec(self, spec_id: int) -> PartitionSpec:
        """The spec with an id."""
        return self.metadata.spec_by_id(spec_id)

    def partition_type(self, spec_id: int) -> StructType:
        """The type of the partition tuples under a spec."""
        if spec_id not in self._types:
            self._types[spec_id] = stored_partition_type(
                self.spec(spec_id), self.metadata.schema(), self.metadata.schemas
            )
        return self._types[spec_id]

"""Where the tables about a table come from: its metadata, manifest lists and manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from icefield.errors import NoSuchSnapshot
from icefield.manifest import ALL_COLUMNS, ManifestEntries, ManifestFile, read_manifest, read_manifest_list
from icefield.metadata import TableMetadata
from icefield.metadata.snapshots import Snapshot
from icefield.scan.united_partition import UnitedPartition
from icefield.storage import FileIO
from icefield.types import StructType


class Source:
    """One version of a table, to be looked into."""

    def __init__(self, metadata: TableMetadata, io: FileIO, metadata_location: str) -> None:
        self.metadata = metadata
        self.io = io
        self.metadata_location = metadata_location
        self._types = {
            spec.spec_id: spec.partition_type(metadata.schema(), metadata.schemas) for spec in metadata.partition_specs
        }
        self._united = UnitedPartition(metadata.partition_specs, self._types)

    def snapshot(self, snapshot_id: int | None) -> Snapshot | None:
        """A snapshot, the current one by default; None for a table without any. Raises ``NoSuchSnapshot``."""
        if snapshot_id is None:
            return self.metadata.current_snapshot()
        found = self.metadata.snapshot_by_id(snapshot_id)
        if found is None:
            raise NoSuchSnapshot(f"the table has no snapshot {snapshot_id}", snapshot_id=snapshot_id)
        return found

    def manifests(self, snapshot: Snapshot | None) -> Sequence[ManifestFile]:
        """The manifests of a snapshot."""
        return () if snapshot is None else read_manifest_list(self.io, snapshot, self.metadata).manifests

    def entries(self, manifests: Iterable[ManifestFile]) -> Iterator[ManifestEntries]:
        """Every column of the entries of some manifests."""
        for manifest in manifests:
            kind = self.partition_type(manifest.partition_spec_id)
            yield read_manifest(self.io, manifest, kind, columns=ALL_COLUMNS)

    def partition_type(self, spec_id: int) -> StructType:
        """The partition tuple of a spec."""
        found = self._types.get(spec_id)
        if found is None:
            spec = self.metadata.spec_by_id(spec_id)
            found = spec.partition_type(self.metadata.schema(), self.metadata.schemas)
        return found

    @property
    def united_partition_type(self) -> pa.StructType:
        """Every partition field of every spec, once."""
        return self._united.arrow_type

    def united_partitions(self, entries: ManifestEntries) -> pa.StructArray:
        """The partition tuples of entries under the fields of all specs; null where a spec does not have one."""
        return self._united.tuples(entries.spec_id, entries.partition)

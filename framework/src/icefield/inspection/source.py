"""Where the tables about a table come from: its metadata, manifest lists and manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from icefield.arrow_types import to_arrow_type
from icefield.errors import NoSuchSnapshot
from icefield.file_io import FileIO
from icefield.manifest import ALL_COLUMNS, ManifestEntries, ManifestFile, read_manifest, read_manifest_list
from icefield.manifest.columns import struct_array
from icefield.metadata import TableMetadata
from icefield.scan.plan_table import united_partition_type
from icefield.snapshots import Snapshot
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
        self._united: StructType = united_partition_type(self._types)

    def snapshot(self, snapshot_id: int | None) -> Snapshot | None:
        """A snapshot, the current one unless told; None for a table without any. Raises ``NoSuchSnapshot``."""
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
        return to_arrow_type(self._united)

    def united_partitions(self, entries: ManifestEntries) -> pa.StructArray:
        """The partition tuples of entries under the fields of all specs; null where a spec does not have one."""
        own = {field.field_id: place for place, field in enumerate(self.partition_type(entries.spec_id).fields)}
        target = self.united_partition_type
        children = []
        for wanted, field in zip(self._united.fields, target, strict=True):
            place = own.get(wanted.field_id)
            if place is None:
                children.append(pa.nulls(len(entries), field.type))
            else:
                child = entries.partition.field(place)
                # The type of a column that the table has forgotten is the file's own.
                children.append(child if child.type == field.type else child.cast(field.type))
        return struct_array(children, list(target), len(entries))

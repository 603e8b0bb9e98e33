"""Table metadata: the whole state of a table at one version, immutable.

See "Table Metadata and Snapshots" of the table specification. Elements of arrays are decoded on access.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TypeVar

from icefield.base.secrets import without_userinfo
from icefield.errors import InvalidArgument, InvalidMetadata, NoSuchSnapshot
from icefield.metadata import codecs
from icefield.metadata.entries import (
    EncryptedKey,
    MetadataLogEntry,
    PartitionStatisticsFile,
    SnapshotLogEntry,
    StatisticsFile,
)
from icefield.metadata.json_array import JsonArray
from icefield.metadata.properties import ENCRYPTION_KEY_ID, METADATA_PREVIOUS_VERSIONS_MAX, FrozenDict, get_int
from icefield.metadata.refs import MAIN_BRANCH, SnapshotRef
from icefield.metadata.snapshots import Snapshot, new_snapshot_id
from icefield.metadata.timestamps import in_utc
from icefield.metadata.timestamps import now_ms as current_ms
from icefield.partitioning import PartitionSpec, SortOrder
from icefield.schema import Schema

T = TypeVar("T")

INITIAL_SEQUENCE_NUMBER = 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TableMetadata:
    """The state of a table, under the names of the specification's JSON keys.

    Times are in milliseconds since 1970-01-01 UTC. ``current_snapshot_id`` is None for a table without data. In
    version 3 ``next_row_id`` is None if neither the writer nor the snapshots state it.
    ``extra`` holds the top-level keys that this version does not know, as JSON text; they are written back.
    Changes are made with ``icefield.metadata.apply_updates``.
    """

    format_version: int
    table_uuid: str | None
    location: str
    last_sequence_number: int = INITIAL_SEQUENCE_NUMBER
    last_updated_ms: int
    last_column_id: int
    schemas: JsonArray[Schema]
    current_schema_id: int
    partition_specs: JsonArray[PartitionSpec]
    default_spec_id: int
    last_partition_id: int
    sort_orders: JsonArray[SortOrder]
    default_sort_order_id: int
    properties: Mapping[str, str] = field(default_factory=FrozenDict)
    current_snapshot_id: int | None = None
    refs: Mapping[str, SnapshotRef] = field(default_factory=FrozenDict)
    snapshots: JsonArray[Snapshot] = field(default_factory=lambda: JsonArray(codecs.SNAPSHOTS))
    statistics: JsonArray[StatisticsFile] = field(default_factory=lambda: JsonArray(codecs.STATISTICS))
    partition_statistics: JsonArray[PartitionStatisticsFile] = field(
        default_factory=lambda: JsonArray(codecs.PARTITION_STATISTICS)
    )
    snapshot_log: JsonArray[SnapshotLogEntry] = field(default_factory=lambda: JsonArray(codecs.SNAPSHOT_LOG))
    metadata_log: JsonArray[MetadataLogEntry] = field(default_factory=lambda: JsonArray(codecs.METADATA_LOG))
    next_row_id: int | None = 0
    encryption_keys: JsonArray[EncryptedKey] = field(default_factory=lambda: JsonArray(codecs.ENCRYPTION_KEYS))
    extra: Mapping[str, bytes] = field(default_factory=FrozenDict)

    @property
    def is_encrypted(self) -> bool:
        """Whether the table has encrypted files, or its new files are to be encrypted.

        Snapshots that are fetched on first use are not: a snapshot with a key needs one of ``encryption_keys``.
        """
        if ENCRYPTION_KEY_ID.name in self.properties or len(self.encryption_keys):
            return True
        return any(each.key_id is not None for each in self.snapshots.known_records())

    @property
    def statistics_files(self) -> list[StatisticsFile | PartitionStatisticsFile]:
        """The files of statistics, of columns and of partitions."""
        return [*self.statistics, *self.partition_statistics]

    def schema(self) -> Schema:
        """The current schema."""
        return self.schema_by_id(self.current_schema_id)

    def spec(self) -> PartitionSpec:
        """The partition spec for new files."""
        return self.spec_by_id(self.default_spec_id)

    def sort_order(self) -> SortOrder:
        """The sort order that writers should follow."""
        return self._by_id("sort order", self.default_sort_order_id, self.sort_orders)

    def schema_by_id(self, schema_id: int) -> Schema:
        """The schema of that id. Raises ``InvalidMetadata`` when the table has none."""
        return self._by_id("schema", schema_id, self.schemas)

    def spec_by_id(self, spec_id: int) -> PartitionSpec:
        """The partition spec of that id. Raises ``InvalidMetadata`` when the table has none."""
        return self._by_id("partition spec", spec_id, self.partition_specs)

    def schema_of(self, snapshot: Snapshot) -> Schema:
        """The schema that a snapshot was written with; the current schema if the snapshot does not state one."""
        found = None if snapshot.schema_id is None else self.schemas.find(snapshot.schema_id)
        return self.schema() if found is None else found

    def ref(self, name: str) -> SnapshotRef | None:
        """The branch or tag of that name, or None."""
        return self.refs.get(name)

    def current_snapshot(self) -> Snapshot | None:
        """The snapshot at the head of ``main``, or None for a table without one."""
        return None if self.current_snapshot_id is None else self.snapshot_by_id(self.current_snapshot_id)

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of that id, or None. Raises ``InvalidArgument`` for an id that is no number."""
        if not isinstance(snapshot_id, Integral):
            raise InvalidArgument(f"a snapshot is named by its id, which is a number, not by {snapshot_id!r}")
        return self.snapshots.find(snapshot_id)

    def snapshot_by_name(self, name: str) -> Snapshot | None:
        """The snapshot that a branch or tag names, or None; ``main`` always exists, with or without a snapshot."""
        ref = self.refs.get(name)
        return None if ref is None else self.snapshot_by_id(ref.snapshot_id)

    def snapshot_as_of(self, timestamp_ms: int, called: str = "") -> Snapshot:
        """The snapshot that was current at a time (ms), by the snapshot log. Errors name the table as ``called``.

        Raises ``NoSuchSnapshot`` when the log does not reach back so far, or when that snapshot has expired.
        """
        # The clock of another writer may have been behind. So the last entry up to the time counts, not the entry
        # before the first later one.
        entry = next((e for e in reversed(self.snapshot_log.records) if e.timestamp_ms <= timestamp_ms), None)
        if entry is None:
            first = min((one.timestamp_ms for one in self.snapshot_log.records), default=None)
            since = "it has no snapshot yet" if first is None else f"its history begins at {in_utc(first)}"
            raise NoSuchSnapshot(
                f"table {called or self.location} had no snapshot at {in_utc(timestamp_ms)}: {since}",
                timestamp_ms=timestamp_ms,
            )
        snapshot = self.snapshot_by_id(entry.snapshot_id)
        if snapshot is None:
            raise NoSuchSnapshot(
                f"table {called or self.location} had snapshot {entry.snapshot_id} at {in_utc(timestamp_ms)}, and that "
                "has expired",
                snapshot_id=entry.snapshot_id,
                timestamp_ms=timestamp_ms,
            )
        return snapshot

    def ancestor_ids(self, snapshot_id: int | None) -> Iterator[int]:
        """The ids of a snapshot and its ancestors, newest first, as far as they have not expired.

        No snapshot is decoded. Parents that form a ring raise ``InvalidMetadata``.
        """
        index, keys = self.snapshots.positions, self.snapshots.records
        seen = 0
        while snapshot_id is not None and (position := index.get(snapshot_id)) is not None:
            seen += 1
            if seen > len(keys):
                raise InvalidMetadata(
                    f"table {self.location}: snapshot {snapshot_id} is its own ancestor",
                    location=self.location,
                    snapshot_id=snapshot_id,
                )
            yield snapshot_id
            snapshot_id = keys[position].parent_snapshot_id

    def ancestors(self, snapshot_id: int | None) -> Iterator[Snapshot]:
        """A snapshot and its ancestors, newest first, as far as they have not expired."""
        index = self.snapshots.positions
        return (self.snapshots[index[ancestor]] for ancestor in self.ancestor_ids(snapshot_id))

    def next_sequence_number(self) -> int:
        """The sequence number of the next snapshot: 0 in v1, which has none."""
        return self.last_sequence_number + 1 if self.format_version > 1 else INITIAL_SEQUENCE_NUMBER

    def new_snapshot_id(self) -> int:
        """A random id that no snapshot of this table has."""
        return new_snapshot_id(self.snapshots.positions)

    def next_timestamp_ms(self, now_ms: int | None = None) -> int:
        """The time of the next change: now, but never before the last change, even if this machine's clock is slow."""
        return max(self.last_updated_ms, current_ms() if now_ms is None else now_ms)

    def head(self, branch: str = MAIN_BRANCH) -> int | None:
        """The snapshot id at the head of a branch, or None; a tag is no branch and has none."""
        ref = self.refs.get(branch)
        return ref.snapshot_id if ref is not None and ref.is_branch else None

    def __repr__(self) -> str:
        location = without_userinfo(self.location)
        location = location if len(location) <= 120 else location[:117] + "..."
        return (
            f"TableMetadata(format_version={self.format_version}, table_uuid={self.table_uuid!r}, "
            f"location={location!r}, current_snapshot_id={self.current_snapshot_id}, "
            f"snapshots={self.snapshots.known_size()}, schemas={len(self.schemas)})"
        )

    def _by_id(self, what: str, wanted: int, array: JsonArray[T]) -> T:
        found = array.find(wanted)
        if found is None:
            known = ", ".join(map(str, list(array.positions)[:20]))
            raise InvalidMetadata(
                f"table {self.location} has no {what} {wanted}; it has {known or 'none'}", location=self.location
            )
        return found


def schema_of_spec(metadata: TableMetadata, spec: PartitionSpec) -> Schema:
    """The schema that has the columns of a spec: the current one, or the last that had them all."""
    sources = {source_id for field in spec.fields for source_id in field.source_ids}
    current = metadata.schema()
    known = [current, *sorted(metadata.schemas, key=lambda schema: schema.schema_id, reverse=True)]
    return next((schema for schema in known if sources <= schema.field_ids), current)


def with_metadata_log(metadata: TableMetadata, previous_location: str, previous_last_updated_ms: int) -> TableMetadata:
    """The metadata with the file that it replaces at the end of its log.

    Entries beyond ``write.metadata.previous-versions-max`` fall out at the front; one is always kept. A second call for
    the same file changes nothing, so that a retried commit may repeat the call.
    """
    entries = metadata.metadata_log.records
    if entries and entries[-1].metadata_file == previous_location:
        return metadata
    log = metadata.metadata_log.extended([MetadataLogEntry(previous_last_updated_ms, previous_location)])
    kept = max(1, get_int(metadata.properties, METADATA_PREVIOUS_VERSIONS_MAX))
    return replace(metadata, metadata_log=log.kept(range(max(0, len(log) - kept), len(log))))

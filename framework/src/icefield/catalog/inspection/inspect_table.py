"""The tables about a table, by name."""

from __future__ import annotations

import pyarrow as pa

from icefield.catalog.inspection.entries import entries_table
from icefield.catalog.inspection.files import files_table
from icefield.catalog.inspection.history import history_table
from icefield.catalog.inspection.manifests import manifests_table
from icefield.catalog.inspection.metadata_log_entries import metadata_log_entries_table
from icefield.catalog.inspection.partitions import partitions_table
from icefield.catalog.inspection.refs import refs_table
from icefield.catalog.inspection.snapshots import snapshots_table
from icefield.catalog.inspection.source import Source
from icefield.expressions import AlwaysTrue, BooleanExpression
from icefield.maintenance.partition_stats_file import read_stats as read_partition_stats
from icefield.manifest import DataFileContent
from icefield.metadata import TableMetadata
from icefield.storage import FileIO

_DATA = frozenset({DataFileContent.DATA})
_DELETES = frozenset({DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES})


class InspectTable:
    """Tables about one version of a table, as pyarrow tables. ``snapshot_id`` defaults to the current snapshot.

    Raises ``NoSuchSnapshot`` for a snapshot that the table does not have.
    """

    def __init__(self, metadata: TableMetadata, io: FileIO, metadata_location: str) -> None:
        self._source = Source(metadata, io, metadata_location)

    def snapshots(self) -> pa.Table:
        """Every snapshot: when and from what it was made, and its summary."""
        return snapshots_table(self._source)

    def history(self) -> pa.Table:
        """Which snapshot was current since when."""
        return history_table(self._source)

    def refs(self) -> pa.Table:
        """Branches and tags."""
        return refs_table(self._source)

    def metadata_log_entries(self) -> pa.Table:
        """The metadata files of this version and of those before it, as far as the log reaches."""
        return metadata_log_entries_table(self._source)

    def manifests(self, snapshot_id: int | None = None) -> pa.Table:
        """The manifests of a snapshot."""
        return manifests_table(self._source, [self._source.snapshot(snapshot_id)])

    def all_manifests(self) -> pa.Table:
        """The manifests of every snapshot, with the snapshot that refers to each."""
        return manifests_table(self._source, list(self._source.metadata.snapshots), every=True)

    def entries(self, snapshot_id: int | None = None) -> pa.Table:
        """The entries of the manifests of a snapshot, deleted ones included."""
        return entries_table(self._source, self._source.snapshot(snapshot_id))

    def files(self, snapshot_id: int | None = None) -> pa.Table:
        """The live files of a snapshot, of data and of deletes."""
        return files_table(self._source, [self._source.snapshot(snapshot_id)])

    def data_files(self, snapshot_id: int | None = None) -> pa.Table:
        """The live data files of a snapshot."""
        return files_table(self._source, [self._source.snapshot(snapshot_id)], _DATA)

    def delete_files(self, snapshot_id: int | None = None) -> pa.Table:
        """The live delete files of a snapshot."""
        return files_table(self._source, [self._source.snapshot(snapshot_id)], _DELETES)

    def all_files(self) -> pa.Table:
        """The files of every manifest that any snapshot refers to; a file may occur more than once."""
        return files_table(self._source, list(self._source.metadata.snapshots))

    def all_data_files(self) -> pa.Table:
        """The data files among ``all_files``."""
        return files_table(self._source, list(self._source.metadata.snapshots), _DATA)

    def all_delete_files(self) -> pa.Table:
        """The delete files among ``all_files``."""
        return files_table(self._source, list(self._source.metadata.snapshots), _DELETES)

    def partitions(
        self,
        snapshot_id: int | None = None,
        row_filter: str | BooleanExpression = AlwaysTrue(),  # noqa: B008 -- immutable
        case_sensitive: bool = True,
    ) -> pa.Table:
        """What each partition holds: counts of rows, files and deletes, and the last change.

        With a filter, only files that may hold matching rows are counted.
        """
        return partitions_table(self._source, self._source.snapshot(snapshot_id), row_filter, case_sensitive)

    def partition_statistics(self, snapshot_id: int | None = None) -> pa.Table | None:
        """What the partition statistics file of a snapshot says; None for a snapshot without one.

        The columns are those of the specification: see ``maintenance.compute_partition_stats``.
        """
        metadata, snapshot = self._source.metadata, self._source.snapshot(snapshot_id)
        files = metadata.partition_statistics
        found = next((each for each in files if snapshot and each.snapshot_id == snapshot.snapshot_id), None)
        return None if found is None else read_partition_stats(self._source.io, metadata, found)

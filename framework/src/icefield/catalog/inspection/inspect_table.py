"""The metadata tables of a table, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypedDict, Unpack

import pyarrow as pa

from icefield.catalog.inspection.entries import EntriesTable
from icefield.catalog.inspection.manifests import ManifestsTable
from icefield.catalog.inspection.metadata_scan import MetadataScan, MetadataTable
from icefield.catalog.inspection.partitions import PartitionsTable
from icefield.catalog.inspection.position_deletes import PositionDeletesTable
from icefield.catalog.inspection.small_tables import SMALL_TABLES, RowsTable
from icefield.catalog.inspection.source import MetadataSource
from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysTrue, BooleanExpression, as_expression, bind
from icefield.manifest import ManifestContent
from icefield.metadata import Snapshot, TableMetadata, Timestamp
from icefield.scan.partitions.stats_file import read_stats as read_partition_stats
from icefield.storage import FileIO

_DATA: Final = frozenset({ManifestContent.DATA})
_DELETES: Final = frozenset({ManifestContent.DELETES})
_ALL: Final = AlwaysTrue()
_EVERY: Final = ("*",)

_MakeTable = Callable[[MetadataSource, Sequence[Snapshot]], MetadataTable]
_OF_SNAPSHOTS: Final[Mapping[str, _MakeTable]] = {
    "files": partial(EntriesTable, live=True),
    "data_files": partial(EntriesTable, contents=_DATA, live=True),
    "delete_files": partial(EntriesTable, contents=_DELETES, live=True),
    "entries": EntriesTable,
    "manifests": ManifestsTable,
}
_OF_ONE_SNAPSHOT: Final[Mapping[str, _MakeTable]] = {
    **_OF_SNAPSHOTS,
    "partitions": PartitionsTable,
    "position_deletes": PositionDeletesTable,
}
_OF_ALL_SNAPSHOTS: Final[Mapping[str, _MakeTable]] = {
    **{f"all_{name}": make for name, make in _OF_SNAPSHOTS.items()},
    "all_manifests": partial(ManifestsTable, every=True),
}


class Wanted(TypedDict, total=False):
    """The rows and columns to read of a metadata table; see ``InspectTable``."""

    row_filter: BooleanExpression | str
    selected_fields: str | tuple[str, ...]
    case_sensitive: bool


class OfSnapshot(Wanted, total=False):
    """The options for a metadata table of one snapshot, selected by a branch, a tag or a time."""

    ref: str | None
    as_of: Timestamp | None


class InspectTable:
    """The metadata tables of one version of a table, with the same columns as in Java.

    The method with a table's name returns it as a pyarrow table; ``scan`` returns it as a stream. ``row_filter`` and
    ``selected_fields`` refer to the columns of the metadata table: ``"partition.region = 'x' and content = 0"``,
    ``("file_path", "readable_metrics.id")``. A filter on the partition, the content and the spec prunes manifests. A
    snapshot is given by ``snapshot_id``, by ``ref`` (a branch or tag) or by ``as_of`` (ms since 1970 UTC, a
    ``datetime`` or a string in ISO form, by the snapshot log); the current one by default.

    Raises ``NoSuchSnapshot`` for an unknown snapshot, and ``InvalidExpression`` or ``InvalidArgument`` for an unknown
    column or an invalid time.
    """

    def __init__(self, metadata: TableMetadata, io: FileIO, metadata_location: str) -> None:
        self._source = MetadataSource(metadata, io, metadata_location)

    def scan(
        self,
        name: str,
        snapshot_id: int | None = None,
        *,
        ref: str | None = None,
        as_of: Timestamp | None = None,
        row_filter: BooleanExpression | str = _ALL,
        selected_fields: str | tuple[str, ...] = _EVERY,
        case_sensitive: bool = True,
    ) -> MetadataScan:
        """A metadata table by name, for a stream of batches: ``inspect.scan("files").to_arrow_batch_reader()``.

        Raises ``InvalidArgument`` for an unknown name, and for a snapshot of a metadata table about all snapshots.
        """
        table = self._table(name, snapshot_id, ref, as_of)
        return MetadataScan(table, row_filter, selected_fields, case_sensitive)

    def snapshots(self, **given: Unpack[Wanted]) -> pa.Table:
        """Every snapshot, with its time, its parent, its operation and its summary."""
        return self.scan("snapshots", **given).to_arrow()

    def history(self, **given: Unpack[Wanted]) -> pa.Table:
        """The snapshot log: each snapshot with the time at which it became current."""
        return self.scan("history", **given).to_arrow()

    def refs(self, **given: Unpack[Wanted]) -> pa.Table:
        """Branches and tags."""
        return self.scan("refs", **given).to_arrow()

    def metadata_log_entries(self, **given: Unpack[Wanted]) -> pa.Table:
        """The metadata files of this version and of those before it, as far as the log reaches."""
        return self.scan("metadata_log_entries", **given).to_arrow()

    def manifests(self, snapshot_id: int | None = None, **given: Unpack[OfSnapshot]) -> pa.Table:
        """The manifests of a snapshot."""
        return self.scan("manifests", snapshot_id, **given).to_arrow()

    def all_manifests(self, **given: Unpack[Wanted]) -> pa.Table:
        """The manifests of every snapshot, with the snapshot that refers to each."""
        return self.scan("all_manifests", **given).to_arrow()

    def entries(self, snapshot_id: int | None = None, **given: Unpack[OfSnapshot]) -> pa.Table:
        """The entries of the manifests of a snapshot, deleted ones included."""
        return self.scan("entries", snapshot_id, **given).to_arrow()

    def all_entries(self, **given: Unpack[Wanted]) -> pa.Table:
        """The entries of every manifest that any snapshot refers to, deleted ones included."""
        return self.scan("all_entries", **given).to_arrow()

    def files(self, snapshot_id: int | None = None, **given: Unpack[OfSnapshot]) -> pa.Table:
        """The live files of a snapshot, of data and of deletes."""
        return self.scan("files", snapshot_id, **given).to_arrow()

    def data_files(self, snapshot_id: int | None = None, **given: Unpack[OfSnapshot]) -> pa.Table:
        """The live data files of a snapshot."""
        return self.scan("data_files", snapshot_id, **given).to_arrow()

    def delete_files(self, snapshot_id: int | None = None, **given: Unpack[OfSnapshot]) -> pa.Table:
        """The live delete files of a snapshot."""
        return self.scan("delete_files", snapshot_id, **given).to_arrow()

    def all_files(self, **given: Unpack[Wanted]) -> pa.Table:
        """The files of every manifest that any snapshot refers to; a file may occur more than once."""
        return self.scan("all_files", **given).to_arrow()

    def all_data_files(self, **given: Unpack[Wanted]) -> pa.Table:
        """The data files among ``all_files``."""
        return self.scan("all_data_files", **given).to_arrow()

    def all_delete_files(self, **given: Unpack[Wanted]) -> pa.Table:
        """The delete files among ``all_files``."""
        return self.scan("all_delete_files", **given).to_arrow()

    def position_deletes(self, snapshot_id: int | None = None, **given: Unpack[OfSnapshot]) -> pa.Table:
        """The positions that the position delete files and deletion vectors of a snapshot name."""
        return self.scan("position_deletes", snapshot_id, **given).to_arrow()

    def partitions(
        self,
        snapshot_id: int | None = None,
        data_filter: BooleanExpression | str = _ALL,
        case_sensitive: bool = True,
        *,
        ref: str | None = None,
        as_of: Timestamp | None = None,
        row_filter: BooleanExpression | str = _ALL,
        selected_fields: str | tuple[str, ...] = _EVERY,
    ) -> pa.Table:
        """The partitions, with counts of rows, files and deletes, and the last change.

        A ``data_filter`` refers to the columns of the table itself: only files that may hold matching rows are counted.
        ``row_filter`` chooses partitions: ``"partition.region = 'x' and file_count > 100"``.
        """
        source = self._source
        bound = bind(source.metadata.schema(), as_expression(data_filter), case_sensitive)
        table = PartitionsTable(source, source.snapshots(snapshot_id, ref, as_of), bound)
        return MetadataScan(table, row_filter, selected_fields, case_sensitive).to_arrow()

    def partition_statistics(self, snapshot_id: int | None = None) -> pa.Table | None:
        """The partition statistics file of a snapshot as a table; None for a snapshot without one.

        The specification defines the columns: see ``maintenance.compute_partition_stats``.
        """
        metadata = self._source.metadata
        ids = {snapshot.snapshot_id for snapshot in self._source.snapshots(snapshot_id)}
        found = next((each for each in metadata.partition_statistics if each.snapshot_id in ids), None)
        return None if found is None else read_partition_stats(self._source.io, metadata, found)

    def _table(self, name: str, snapshot_id: int | None, ref: str | None, as_of: Timestamp | None) -> MetadataTable:
        source = self._source
        of_one = _OF_ONE_SNAPSHOT.get(name)
        if of_one is not None:
            return of_one(source, source.snapshots(snapshot_id, ref, as_of))
        known = {*_OF_ONE_SNAPSHOT, *_OF_ALL_SNAPSHOTS, *SMALL_TABLES}
        if name not in known:
            names = ", ".join(sorted(known))
            raise InvalidArgument(f"there is no metadata table '{name}'; there are {names}", name=name)
        if not (snapshot_id is None and ref is None and as_of is None):
            raise InvalidArgument(
                f"the metadata table '{name}' is about all snapshots of the table, and not about one of them; a "
                f"row_filter chooses among its rows, and {', '.join(sorted(_OF_ONE_SNAPSHOT))} are of one snapshot",
                name=name,
            )
        if name in SMALL_TABLES:
            return RowsTable(source, *SMALL_TABLES[name])
        return _OF_ALL_SNAPSHOTS[name](source, source.metadata.snapshots)

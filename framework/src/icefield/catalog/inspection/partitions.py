"""The table of partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.catalog.inspection.manifest_pruning import ManifestPruning
from icefield.catalog.inspection.metadata_scan import INSTANT, MetadataTable
from icefield.catalog.inspection.pieces import pieces
from icefield.catalog.inspection.selection import MetadataSelection
from icefield.catalog.inspection.source import MetadataSource
from icefield.errors import InvalidMetadata
from icefield.expressions import AlwaysTrue, BooleanExpression
from icefield.manifest import ManifestContent, ManifestList, ManifestRequest
from icefield.metadata.snapshots import Snapshot
from icefield.scan.partitions.sums import SUMMED_COLUMNS, SUMS, PartitionSums, SummingUp, snapshot_times
from icefield.scan.planning.manifest_filter import ManifestFilter, manifest_lists
from icefield.scan.planning.pruning import needed_statistics

_COUNTS: Final = {
    "record_count": (pa.int64(), ("data_record_count",)),
    "file_count": (pa.int32(), ("data_file_count",)),
    "total_data_file_size_in_bytes": (pa.int64(), ("total_data_file_size_in_bytes",)),
    "position_delete_record_count": (pa.int64(), ("position_delete_record_count",)),
    "position_delete_file_count": (pa.int32(), ("position_delete_file_count", "dv_count")),
    "equality_delete_record_count": (pa.int64(), ("equality_delete_record_count",)),
    "equality_delete_file_count": (pa.int32(), ("equality_delete_file_count",)),
}
"""Each column of counts, with its type and the names of its sums."""

_BATCH_ROWS: Final = 65_536


class PartitionsTable(MetadataTable):
    """One row per partition with live files; ``last_updated_*`` state the newest snapshot that added one.

    A table that never had a partition field has one row, without the columns ``partition`` and ``spec_id``.
    ``data_filter`` is bound to the table's schema: only files that may hold, or delete, matching rows count.
    """

    def __init__(
        self, source: MetadataSource, snapshots: Sequence[Snapshot], data_filter: BooleanExpression | None = None
    ) -> None:
        self._source = source
        self._snapshots = snapshots
        self._data_filter = AlwaysTrue() if data_filter is None else data_filter
        self.schema = _schema(source.united.arrow_type)

    def batches(self, selection: MetadataSelection) -> Iterator[pa.RecordBatch]:
        found = self._sums(selection).result()
        for start in range(0, len(found), _BATCH_ROWS):
            rows = np.arange(start, min(start + _BATCH_ROWS, len(found)))
            yield selection.of(self._batch(found.take(rows)))

    def _sums(self, selection: MetadataSelection) -> SummingUp:
        """The sums of the partitions that may match. Memory grows with the number of partitions."""
        source = self._source
        total = SummingUp(snapshot_times(source.metadata), source.united)
        chosen = ManifestFilter(source.metadata, source.io, source.metadata.schema(), self._data_filter)
        pruning = ManifestPruning(source, selection.row_filter)
        for _, manifests in manifest_lists(source.metadata, source.io, self._snapshots):
            self._add(total, manifests, chosen, pruning)
        return total

    def _add(self, total: SummingUp, manifests: ManifestList, chosen: ManifestFilter, pruning: ManifestPruning) -> None:
        for content in ManifestContent:
            kept = np.zeros(len(manifests), np.bool_)
            kept[chosen.choose(manifests, content)] = True
            files = manifests.select(np.flatnonzero(pruning.may_match(manifests, kept)), summaries=False)
            # The column bounds of a delete file do not describe the rows that it deletes.
            row_filter = self._data_filter if content is ManifestContent.DATA else AlwaysTrue()
            request = ManifestRequest(SUMMED_COLUMNS, needed_statistics(row_filter))
            matching = chosen.matching(files, row_filter, request)
            total.add_live(pieces(part.select(SUMMED_COLUMNS).filter(mask) for part, mask, _ in matching))

    def _batch(self, found: PartitionSums) -> pa.RecordBatch:
        columns = {"partition": found.partition, "spec_id": pa.array(found.spec_ids.astype(np.int32))}
        for name, (kind, sums) in _COUNTS.items():
            columns[name] = pa.array(sum(found.sums[:, SUMS.index(one)] for one in sums)).cast(kind)
        expired = pa.array(found.times < 0)
        try:
            times = pc.multiply_checked(pc.if_else(expired, None, pa.array(found.times)), 1000)
        except pa.ArrowInvalid as error:
            raise InvalidMetadata("the table metadata has a time that no timestamp holds") from error
        columns["last_updated_at"] = times.cast(INSTANT)
        columns["last_updated_snapshot_id"] = pc.if_else(expired, None, pa.array(found.snapshot_ids))
        return pa.RecordBatch.from_arrays([columns[field.name] for field in self.schema], schema=self.schema)


def _schema(partition: pa.StructType) -> pa.Schema:
    partitioned = [pa.field("partition", partition, nullable=False), pa.field("spec_id", pa.int32(), nullable=False)]
    return pa.schema(
        [
            *(partitioned if partition.num_fields else ()),
            *(pa.field(name, kind, nullable=False) for name, (kind, _) in _COUNTS.items()),
            pa.field("last_updated_at", INSTANT),
            pa.field("last_updated_snapshot_id", pa.int64()),
        ]
    )

"""The tables of manifests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefield.catalog.inspection.manifest_pruning import bounded
from icefield.catalog.inspection.metadata_table import MetadataTable
from icefield.catalog.inspection.selection import MetadataSelection
from icefield.catalog.inspection.source import MetadataSource
from icefield.catalog.inspection.summaries import summary_lists, summary_type
from icefield.expressions import PartitionSummaries, bound_leaves, manifests_may_match
from icefield.manifest import ManifestContent, ManifestList
from icefield.manifest.manifest_list import (
    ADDED_FILES,
    ADDED_SNAPSHOT,
    CONTENT,
    DELETED_FILES,
    EXISTING_FILES,
    KEY_METADATA,
    LENGTH,
    PATH,
    SPEC_ID,
)
from icefield.metadata.snapshots import Snapshot
from icefield.scan.planning.manifest_filter import manifest_lists

_PLAIN: Final = {
    "content": CONTENT,
    "path": PATH,
    "length": LENGTH,
    "partition_spec_id": SPEC_ID,
    "added_snapshot_id": ADDED_SNAPSHOT,
    "key_metadata": KEY_METADATA,
}
_COUNTS: Final = {
    f"{name}_{kind}_files_count": (number, content)
    for kind, content in (("data", ManifestContent.DATA), ("delete", ManifestContent.DELETES))
    for name, number in (("added", ADDED_FILES), ("existing", EXISTING_FILES), ("deleted", DELETED_FILES))
}
_REFERENCE: Final = "reference_snapshot_id"
_SCHEMA: Final = pa.schema(
    [
        pa.field("content", pa.int32(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("partition_spec_id", pa.int32(), nullable=False),
        pa.field("added_snapshot_id", pa.int64(), nullable=False),
        *(pa.field(name, pa.int32(), nullable=False) for name in _COUNTS),
        pa.field("partition_summaries", pa.list_(summary_type()), nullable=False),
    ]
)
_ALL_SCHEMA: Final = _SCHEMA.append(pa.field(_REFERENCE, pa.int64(), nullable=False)).append(
    pa.field("key_metadata", pa.binary())
)
_BATCH_ROWS: Final = 8192


class ManifestsTable(MetadataTable):
    """One row per manifest of each snapshot; with ``every``, with the id of the referring snapshot."""

    def __init__(self, source: MetadataSource, snapshots: Sequence[Snapshot], *, every: bool = False) -> None:
        self._source = source
        self._snapshots = snapshots
        self.schema = _ALL_SCHEMA if every else _SCHEMA

    def batches(self, selection: MetadataSelection) -> Iterator[pa.RecordBatch]:
        for snapshot, manifests in manifest_lists(self._source.metadata, self._source.io, self._referring(selection)):
            for start in range(0, len(manifests), _BATCH_ROWS):
                rows = np.arange(start, min(start + _BATCH_ROWS, len(manifests)))
                columns = [self._column(snapshot, manifests, rows, field.name) for field in selection.read]
                yield selection.of(pa.RecordBatch.from_arrays(columns, schema=selection.read))

    def _referring(self, selection: MetadataSelection) -> Sequence[Snapshot]:
        """The snapshots that may have matching manifests, by the filter on their ids."""
        numbers = {leaf.field.field_id for leaf in bound_leaves(selection.row_filter) if leaf.path == (_REFERENCE,)}
        if not numbers or not self._snapshots:
            return self._snapshots
        ids = pa.array([snapshot.snapshot_id for snapshot in self._snapshots], pa.int64())
        known = PartitionSummaries(len(ids), dict.fromkeys(numbers, bounded(ids, ids)))
        kept = manifests_may_match(selection.row_filter, known)
        return [snapshot for snapshot, one in zip(self._snapshots, kept.tolist(), strict=True) if one]

    def _column(self, snapshot: Snapshot, manifests: ManifestList, rows: npt.NDArray[Any], name: str) -> pa.Array:
        if name == _REFERENCE:
            return pa.array(np.full(len(rows), snapshot.snapshot_id, np.int64))
        if name == "partition_summaries":
            return summary_lists(self._source, manifests, rows)
        if name in _PLAIN:
            return manifests.columns[_PLAIN[name]].take(pa.array(rows))
        number, content = _COUNTS[name]
        own = pa.array(manifests.integers(CONTENT)[rows] == content)
        counts = pc.fill_null(manifests.columns[number].take(pa.array(rows)), 0)
        return pc.if_else(own, counts, pa.scalar(0, pa.int32()))

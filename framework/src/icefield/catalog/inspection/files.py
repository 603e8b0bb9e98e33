"""The table of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.catalog.inspection.metrics import MetricColumns
from icefield.catalog.inspection.source import Source
from icefield.manifest import DataFileContent, EntryStatus, ManifestEntries, ManifestFile
from icefield.manifest import schemas as f
from icefield.manifest.columns import COLUMN_TYPES, MAP_TYPES
from icefield.metadata.snapshots import Snapshot

_FORMAT: Final = pa.dictionary(pa.int32(), pa.string())
_EVERY: Final = frozenset(DataFileContent)
STATISTICS: Final = {
    "column_sizes": f.COLUMN_SIZES,
    "value_counts": f.VALUE_COUNTS,
    "null_value_counts": f.NULL_VALUE_COUNTS,
    "nan_value_counts": f.NAN_VALUE_COUNTS,
    "lower_bounds": f.LOWER_BOUNDS,
    "upper_bounds": f.UPPER_BOUNDS,
}
OTHERS: Final = {
    "key_metadata": f.KEY_METADATA,
    "split_offsets": f.SPLIT_OFFSETS,
    "equality_ids": f.EQUALITY_IDS,
    "sort_order_id": f.SORT_ORDER_ID,
}


def files_table(
    source: Source, snapshots: Sequence[Snapshot | None], contents: frozenset[DataFileContent] = _EVERY
) -> pa.Table:
    """One row a live file of the snapshots' manifests, each manifest once."""
    metrics = MetricColumns(source.metadata.schema())
    schema = _schema(source, metrics)
    manifests: dict[str, ManifestFile] = {}
    for snapshot in snapshots:
        manifests.update((manifest.manifest_path, manifest) for manifest in source.manifests(snapshot))
    batches = []
    for entries in source.entries(manifests.values()):
        wanted = np.isin(np.asarray(entries.column(f.CONTENT)), [int(content) for content in contents])
        live = entries.filter(wanted & (entries.status() != EntryStatus.DELETED))
        if len(live):
            batches.append(_batch(source, live, metrics, schema))
    return pa.Table.from_batches(batches, schema=schema)


def _batch(source: Source, entries: ManifestEntries, metrics: MetricColumns, schema: pa.Schema) -> pa.RecordBatch:
    columns = {
        "content": entries.column(f.CONTENT).cast(pa.int8()),
        "file_path": entries.column(f.FILE_PATH),
        "file_format": pc.utf8_upper(entries.column(f.FILE_FORMAT)).cast(_FORMAT),
        "spec_id": pa.array(np.full(len(entries), entries.spec_id, np.int32)),
        "partition": source.united_partitions(entries),
        "record_count": entries.column(f.RECORD_COUNT),
        "file_size_in_bytes": entries.column(f.FILE_SIZE),
        **{name: entries.column(number) for name, number in {**STATISTICS, **OTHERS}.items()},
        "readable_metrics": metrics.column(entries),
    }
    return pa.RecordBatch.from_arrays([columns[field.name] for field in schema], schema=schema)


def _schema(source: Source, metrics: MetricColumns) -> pa.Schema:
    return pa.schema(
        [
            pa.field("content", pa.int8(), nullable=False),
            pa.field("file_path", pa.string(), nullable=False),
            pa.field("file_format", _FORMAT, nullable=False),
            pa.field("spec_id", pa.int32(), nullable=False),
            pa.field("partition", source.united_partition_type, nullable=False),
            pa.field("record_count", pa.int64(), nullable=False),
            pa.field("file_size_in_bytes", pa.int64(), nullable=False),
            *(pa.field(name, MAP_TYPES[number]) for name, number in STATISTICS.items()),
            *(pa.field(name, COLUMN_TYPES[number]) for name, number in OTHERS.items()),
            pa.field("readable_metrics", metrics.type),
        ]
    )

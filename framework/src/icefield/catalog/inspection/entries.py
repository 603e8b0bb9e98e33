"""The table of manifest entries."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icefield.catalog.inspection.files import OTHERS, STATISTICS
from icefield.catalog.inspection.metrics import MetricColumns
from icefield.catalog.inspection.source import Source
from icefield.manifest import ManifestEntries
from icefield.manifest import schemas as f
from icefield.manifest.columns import COLUMN_TYPES, MAP_TYPES, struct_array
from icefield.metadata.snapshots import Snapshot


def entries_table(source: Source, snapshot: Snapshot | None) -> pa.Table:
    """One row an entry of the snapshot's manifests: 0 existing, 1 added, 2 deleted; inherited values are filled in."""
    metrics = MetricColumns(source.metadata.schema())
    file_type = _file_type(source)
    schema = pa.schema(
        [
            pa.field("status", pa.int8(), nullable=False),
            pa.field("snapshot_id", pa.int64(), nullable=False),
            pa.field("sequence_number", pa.int64(), nullable=False),
            pa.field("file_sequence_number", pa.int64(), nullable=False),
            pa.field("data_file", file_type, nullable=False),
            pa.field("readable_metrics", metrics.type),
        ]
    )
    batches = [
        pa.RecordBatch.from_arrays(
            [
                entries.column(f.STATUS).cast(pa.int8()),
                entries.column(f.SNAPSHOT_ID),
                _known(entries.column(f.SEQUENCE_NUMBER)),
                _known(entries.column(f.FILE_SEQUENCE_NUMBER)),
                _file_column(source, entries, file_type),
                metrics.column(entries),
            ],
            schema=schema,
        )
        for entries in source.entries(source.manifests(snapshot))
    ]
    return pa.Table.from_batches(batches, schema=schema)


def _file_type(source: Source) -> pa.StructType:
    return pa.struct(
        [
            pa.field("content", pa.int8(), nullable=False),
            pa.field("file_path", pa.string(), nullable=False),
            pa.field("file_format", pa.string(), nullable=False),
            pa.field("partition", source.united_partition_type, nullable=False),
            pa.field("record_count", pa.int64(), nullable=False),
            pa.field("file_size_in_bytes", pa.int64(), nullable=False),
            *(pa.field(name, MAP_TYPES[number]) for name, number in STATISTICS.items()),
            *(pa.field(name, COLUMN_TYPES[number]) for name, number in OTHERS.items()),
        ]
    )


def _file_column(source: Source, entries: ManifestEntries, kind: pa.StructType) -> pa.StructArray:
    columns = {
        "content": entries.column(f.CONTENT).cast(pa.int8()),
        "file_path": entries.column(f.FILE_PATH),
        "file_format": pc.utf8_upper(entries.column(f.FILE_FORMAT)),
        "partition": source.united_partitions(entries),
        "record_count": entries.column(f.RECORD_COUNT),
        "file_size_in_bytes": entries.column(f.FILE_SIZE),
        **{name: entries.column(number) for name, number in {**STATISTICS, **OTHERS}.items()},
    }
    return struct_array([columns[field.name] for field in kind], list(kind), len(entries))


def _known(numbers: pa.Array) -> pa.Array:
    """Sequence numbers; some writers left those of deleted entries out."""
    return pc.fill_null(numbers, 0) if numbers.null_count else numbers

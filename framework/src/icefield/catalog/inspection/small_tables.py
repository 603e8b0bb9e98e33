"""The metadata tables with few rows: snapshots, the snapshot log, branches and tags, metadata files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from icefield.catalog.inspection.metadata_scan import INSTANT, MetadataTable
from icefield.catalog.inspection.selection import MetadataSelection
from icefield.catalog.inspection.source import MetadataSource
from icefield.errors import InvalidMetadata, NoSuchSnapshot

_SNAPSHOTS: Final = pa.schema(
    [
        pa.field("committed_at", INSTANT, nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("operation", pa.string()),
        pa.field("manifest_list", pa.string()),
        pa.field("summary", pa.map_(pa.string(), pa.string())),
    ]
)
_HISTORY: Final = pa.schema(
    [
        pa.field("made_current_at", INSTANT, nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("is_current_ancestor", pa.bool_(), nullable=False),
    ]
)
_REFS: Final = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("max_reference_age_in_ms", pa.int64()),
        pa.field("min_snapshots_to_keep", pa.int32()),
        pa.field("max_snapshot_age_in_ms", pa.int64()),
    ]
)
_METADATA_LOG: Final = pa.schema(
    [
        pa.field("timestamp", INSTANT, nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("latest_snapshot_id", pa.int64()),
        pa.field("latest_schema_id", pa.int32()),
        pa.field("latest_sequence_number", pa.int64()),
    ]
)


class RowsTable(MetadataTable):
    """A metadata table whose rows are made one by one, as tuples in the order of the columns."""

    def __init__(
        self, source: MetadataSource, schema: pa.Schema, rows: Callable[[MetadataSource], Iterable[tuple[Any, ...]]]
    ) -> None:
        self._source, self.schema, self._rows = source, schema, rows

    def batches(self, selection: MetadataSelection) -> Iterator[pa.RecordBatch]:
        rows = [dict(zip(self.schema.names, row, strict=True)) for row in self._rows(self._source)]
        yield selection.of(pa.RecordBatch.from_pylist(rows, schema=self.schema))


def _snapshots(source: MetadataSource) -> Iterator[tuple[Any, ...]]:
    """One row per snapshot, in the order of their addition. ``manifest_list`` is null for old v1 snapshots."""
    for each in source.metadata.snapshots:
        summary = [item for item in each.summary.items() if item[0] != "operation"]
        operation = each.summary.get("operation")
        yield (
            _instant(each.timestamp_ms),
            each.snapshot_id,
            each.parent_snapshot_id,
            operation,
            each.manifest_list,
            summary,
        )


def _history(source: MetadataSource) -> Iterator[tuple[Any, ...]]:
    """One row per change of the current snapshot, oldest first."""
    metadata = source.metadata
    ancestors = set(metadata.ancestor_ids(metadata.current_snapshot_id))
    for entry in metadata.snapshot_log:
        snapshot = metadata.snapshot_by_id(entry.snapshot_id)
        parent = None if snapshot is None else snapshot.parent_snapshot_id
        yield _instant(entry.timestamp_ms), entry.snapshot_id, parent, entry.snapshot_id in ancestors


def _refs(source: MetadataSource) -> Iterator[tuple[Any, ...]]:
    """One row per branch or tag."""
    for name, ref in source.metadata.refs.items():
        ages = ref.max_ref_age_ms, ref.min_snapshots_to_keep, ref.max_snapshot_age_ms
        yield name, ref.type.value.upper(), ref.snapshot_id, *ages


def _metadata_log(source: MetadataSource) -> Iterator[tuple[Any, ...]]:
    """One row per metadata file, oldest first, with its current snapshot; the last row is this version."""
    metadata = source.metadata
    files = [(entry.timestamp_ms, entry.metadata_file) for entry in metadata.metadata_log]
    for timestamp, file in [*files, (metadata.last_updated_ms, source.metadata_location)]:
        latest: tuple[int | None, ...] = (None, None, None)
        try:
            snapshot = metadata.snapshot_as_of(timestamp)
            latest = snapshot.snapshot_id, snapshot.schema_id, snapshot.sequence_number
        except NoSuchSnapshot:
            pass
        yield _instant(timestamp), file, *latest


SMALL_TABLES: Final = {
    "snapshots": (_SNAPSHOTS, _snapshots),
    "history": (_HISTORY, _history),
    "refs": (_REFS, _refs),
    "metadata_log_entries": (_METADATA_LOG, _metadata_log),
}
"""The columns and the rows of each table, by its name."""


def _instant(milliseconds: int) -> int:
    """A time of table metadata (ms since 1970 UTC) in microseconds. Raises ``InvalidMetadata`` beyond any timestamp."""
    if abs(milliseconds) > (2**63 - 1) // 1000:
        raise InvalidMetadata(f"the table metadata has the time {milliseconds} ms, which no timestamp holds")
    return milliseconds * 1000

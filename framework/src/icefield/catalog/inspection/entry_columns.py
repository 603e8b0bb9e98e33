"""The columns of the metadata tables of files and manifest entries, computed from manifest columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.catalog.inspection.manifest_pruning import ManifestPruning
from icefield.catalog.inspection.metrics import MetricColumns
from icefield.catalog.inspection.selection import MetadataSelection, narrow
from icefield.catalog.inspection.source import MetadataSource
from icefield.manifest import ManifestContent, ManifestEntries, ManifestList, ManifestRequest
from icefield.manifest import schemas as f
from icefield.manifest.columns import COLUMN_TYPES, MAP_TYPES, struct_array
from icefield.manifest.manifest_list import CONTENT
from icefield.metadata.snapshots import Snapshot
from icefield.scan.planning.pruning import Mask

_NUMBERS: Final = {rule.name: rule.field_id for rule in (*f.ENTRY_FIELDS, *f.DATA_FILE_FIELDS)}
_TYPES: Final = {**COLUMN_TYPES, **MAP_TYPES}
_METRICS: Final = "readable_metrics"
_REQUIRED: Final = frozenset(
    {"status", "content", "file_path", "file_format", "spec_id", "record_count", "file_size_in_bytes"}
)
_FILE: Final = (
    "content",
    "file_path",
    "file_format",
    "spec_id",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "key_metadata",
    "split_offsets",
    "equality_ids",
    "sort_order_id",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)
"""The columns of a file, in Java's order. A table that was never partitioned has no ``partition``."""

_ENTRY: Final = ("status", "snapshot_id", "sequence_number", "file_sequence_number")


class EntryColumns:
    """Makes the columns of files and entries, by name."""

    def __init__(self, source: MetadataSource) -> None:
        self._source = source
        self._metrics = MetricColumns(source.metadata.schema())
        self._metrics_field = pa.field(_METRICS, self._metrics.type)

    def file_schema(self) -> pa.Schema:
        """The columns of a table of files."""
        return pa.schema([*self._file_fields(), self._metrics_field])

    def entry_schema(self) -> pa.Schema:
        """The columns of a table of entries."""
        file = pa.field("data_file", pa.struct(self._file_fields()), nullable=False)
        return pa.schema([*(_field(name) for name in _ENTRY), file, self._metrics_field])

    def request(self, schema: pa.Schema) -> ManifestRequest:
        """The manifest columns and statistics that these columns need."""
        columns: set[int] = set()
        statistics = {}
        for field in _flat(schema):
            if field.name == _METRICS:
                statistics = dict(self._metrics.request(field.type))
            elif field.name in _NUMBERS:
                columns.add(_NUMBERS[field.name])
        whole = MAP_TYPES.keys() & columns
        # If a whole map is read, it contains the statistics of single columns.
        return ManifestRequest(
            frozenset(columns), {number: ids for number, ids in statistics.items() if number not in whole}
        )

    def batch(self, entries: ManifestEntries, schema: pa.Schema) -> pa.RecordBatch:
        """These columns of some entries, all of one spec."""
        return pa.RecordBatch.from_arrays([self._column(entries, field) for field in schema], schema=schema)

    def _column(self, entries: ManifestEntries, field: pa.Field) -> pa.Array:
        match field.name:
            case "data_file":
                children = [self._column(entries, child) for child in field.type]
                return struct_array(children, list(field.type), len(entries))
            case "readable_metrics":
                return self._metrics.column(entries, field.type)
            case "partition":
                return narrow(self._source.partitions(entries), field.type)
            case "spec_id":
                return pa.array(np.full(len(entries), entries.spec_id, np.int32))
            case "file_format":
                return pc.utf8_upper(entries.column(f.FILE_FORMAT))
        return entries.column(_NUMBERS[field.name])

    def _file_fields(self) -> list[pa.Field]:
        partition = self._source.united.arrow_type
        fields = []
        for name in _FILE:
            if name != "partition":
                fields.append(_field(name))
            elif partition.num_fields:
                fields.append(pa.field(name, partition, nullable=False))
        return fields


def entry_batches(
    source: MetadataSource,
    columns: EntryColumns,
    selection: MetadataSelection,
    snapshots: Sequence[Snapshot],
    contents: frozenset[ManifestContent],
    *,
    live: bool,
) -> Iterator[pa.RecordBatch]:
    """The entries of the snapshots' manifests with these contents, each manifest once.

    With ``live``, deleted entries are left out.
    """
    pruning = ManifestPruning(source, selection.row_filter)
    wanted = [int(content) for content in contents]

    def choice(manifests: ManifestList) -> Mask:
        kept = np.isin(manifests.integers(CONTENT), wanted)
        if live:
            kept &= manifests.may_have_live_files()
        return pruning.may_match(manifests, kept)

    for entries in source.entries(snapshots, choice, columns.request(selection.read)):
        rows = entries.filter(entries.live()) if live else entries
        if selection.is_filtered:
            rows = rows.filter(selection.matches(columns.batch(rows, selection.tested)))
        if len(rows):
            yield columns.batch(rows, selection.schema)


def _field(name: str) -> pa.Field:
    kind = pa.int32() if name == "spec_id" else _TYPES[_NUMBERS[name]]
    return pa.field(name, kind, nullable=name not in _REQUIRED)


def _flat(fields: Iterable[pa.Field]) -> Iterator[pa.Field]:
    for field in fields:
        if field.name == "data_file":
            yield from field.type
        else:
            yield field

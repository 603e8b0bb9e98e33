"""The columns of the metadata tables of files and manifest entries, computed from manifest columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.catalog.inspection.selection import narrow, without_keys
from icefield.catalog.inspection.source import MetadataSource
from icefield.manifest import ManifestEntries, ManifestRequest
from icefield.manifest import schemas as f
from icefield.manifest.columns import COLUMN_TYPES, MAP_TYPES, struct_array
from icefield.manifest.statistics import StatisticsRequest
from icefield.schema import Schema
from icefield.types import NestedField
from icefield.types.arrow.types import to_arrow_type
from icefield.types.values import from_bytes_array

_NUMBERS: Final = {rule.name: rule.field_id for rule in (*f.ENTRY_FIELDS, *f.DATA_FILE_FIELDS)}
_TYPES: Final = {**COLUMN_TYPES, **MAP_TYPES}
_METRICS: Final = "readable_metrics"
_COUNTS: Final = {
    "column_size": f.COLUMN_SIZES,
    "value_count": f.VALUE_COUNTS,
    "null_value_count": f.NULL_VALUE_COUNTS,
    "nan_value_count": f.NAN_VALUE_COUNTS,
}
_BOUNDS: Final = {"lower_bound": f.LOWER_BOUNDS, "upper_bound": f.UPPER_BOUNDS}
_BY_METRIC: Final = {**_COUNTS, **_BOUNDS}
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


class MetricColumns:
    """The column ``readable_metrics``: the metrics of each primitive column of a schema, by its full name.

    Nested columns are included. ``type`` is a struct with one field per column, sorted by name, as in Java.
    """

    def __init__(self, schema: Schema) -> None:
        self._fields: dict[str, NestedField] = {}
        for field_id, field in schema.id_to_field.items():
            name = schema.find_column_name(field_id)
            if field.field_type.is_primitive and name is not None:
                self._fields[name] = field
        self._types = {field.field_id: field.field_type for field in self._fields.values()}
        self.type = pa.struct([pa.field(name, _metrics_type(self._fields[name])) for name in sorted(self._fields)])

    def request(self, wanted: pa.StructType) -> StatisticsRequest:
        """The statistics that a part of the column needs."""
        if wanted.equals(self.type):
            return dict.fromkeys(_BY_METRIC.values(), frozenset(self._types))
        ids: dict[int, set[int]] = {}
        for column in wanted:
            for metric in column.type:
                ids.setdefault(_BY_METRIC[metric.name], set()).add(self._fields[column.name].field_id)
        return {kind: frozenset(found) for kind, found in ids.items()}

    def column(self, entries: ManifestEntries, wanted: pa.StructType) -> pa.StructArray:
        """The wanted metrics of each file."""
        for kind, ids in self.request(wanted).items():
            entries.gather(kind, ids)
            if kind in _BOUNDS.values():
                entries.gather_bounds(kind, {id_: self._types[id_] for id_ in ids}, from_bytes_array)
        columns = [struct_array(self._of(entries, column), list(column.type), len(entries)) for column in wanted]
        return struct_array(columns, list(wanted), len(entries))

    def _of(self, entries: ManifestEntries, column: pa.Field) -> list[pa.Array]:
        field = self._fields[column.name]
        found = []
        for metric in column.type:
            number = _BY_METRIC[metric.name]
            if metric.name in _COUNTS:
                values = entries.statistic(number, field.field_id)
            else:
                values = entries.bound(number, field.field_id, field.field_type, from_bytes_array)
            found.append(pa.nulls(len(entries), metric.type) if values is None else values)
        return found


def _metrics_type(field: NestedField) -> pa.StructType:
    bound = to_arrow_type(field.field_type)
    return pa.struct([*((name, pa.int64()) for name in _COUNTS), *((name, bound) for name in _BOUNDS)])


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
        # A map that is read whole contains the statistics of single columns, so they need no request.
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
            case "key_metadata":
                return without_keys(entries.column(f.KEY_METADATA))
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


def _field(name: str) -> pa.Field:
    kind = pa.int32() if name == "spec_id" else _TYPES[_NUMBERS[name]]
    return pa.field(name, kind, nullable=name not in _REQUIRED)


def _flat(fields: Iterable[pa.Field]) -> Iterator[pa.Field]:
    for field in fields:
        if field.name == "data_file":
            yield from field.type
        else:
            yield field

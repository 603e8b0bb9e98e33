"""Readable file statistics: one struct per column, with decoded bounds."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from icefield.manifest import ManifestEntries
from icefield.manifest import schemas as f
from icefield.manifest.columns import struct_array
from icefield.manifest.statistics import StatisticsRequest
from icefield.schema import Schema
from icefield.types import NestedField
from icefield.types.arrow.types import to_arrow_type
from icefield.types.values import from_bytes_array

_COUNTS: Final = {
    "column_size": f.COLUMN_SIZES,
    "value_count": f.VALUE_COUNTS,
    "null_value_count": f.NULL_VALUE_COUNTS,
    "nan_value_count": f.NAN_VALUE_COUNTS,
}
_BOUNDS: Final = {"lower_bound": f.LOWER_BOUNDS, "upper_bound": f.UPPER_BOUNDS}
_STATISTICS: Final = {**_COUNTS, **_BOUNDS}


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
        self.type = pa.struct([pa.field(name, _metrics_type(self._fields[name])) for name in sorted(self._fields)])

    def request(self, wanted: pa.StructType) -> StatisticsRequest:
        """The statistics that a part of the column needs."""
        ids: dict[int, set[int]] = {}
        for column in wanted:
            for metric in column.type:
                ids.setdefault(_STATISTICS[metric.name], set()).add(self._fields[column.name].field_id)
        return {kind: frozenset(found) for kind, found in ids.items()}

    def column(self, entries: ManifestEntries, wanted: pa.StructType) -> pa.StructArray:
        """The wanted metrics of each file."""
        for kind, ids in self.request(wanted).items():
            entries.gather(kind, ids)
        columns = [struct_array(self._of(entries, column), list(column.type), len(entries)) for column in wanted]
        return struct_array(columns, list(wanted), len(entries))

    def _of(self, entries: ManifestEntries, column: pa.Field) -> list[pa.Array]:
        field = self._fields[column.name]
        found = []
        for metric in column.type:
            number = _STATISTICS[metric.name]
            if metric.name in _COUNTS:
                values = entries.statistic(number, field.field_id)
            else:
                values = entries.bound(number, field.field_id, field.field_type, from_bytes_array)
            found.append(pa.nulls(len(entries), metric.type) if values is None else values)
        return found


def _metrics_type(field: NestedField) -> pa.StructType:
    bound = to_arrow_type(field.field_type)
    return pa.struct([*((name, pa.int64()) for name in _COUNTS), *((name, bound) for name in _BOUNDS)])

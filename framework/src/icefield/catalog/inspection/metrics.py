"""Statistics of files for people: one struct a column, with its bounds decoded."""

from __future__ import annotations

import pyarrow as pa

from icefield.manifest import ManifestEntries
from icefield.manifest import schemas as f
from icefield.manifest.columns import struct_array
from icefield.schema import Schema
from icefield.types import NestedField
from icefield.types.arrow.types import to_arrow_type
from icefield.types.values import from_bytes_array

_COUNTS = {
    "column_size": f.COLUMN_SIZES,
    "value_count": f.VALUE_COUNTS,
    "null_value_count": f.NULL_VALUE_COUNTS,
    "nan_value_count": f.NAN_VALUE_COUNTS,
}
_BOUNDS = {"lower_bound": f.LOWER_BOUNDS, "upper_bound": f.UPPER_BOUNDS}


class MetricColumns:
    """The column ``readable_metrics``: for each primitive column of a schema, nested ones too, by its full name."""

    def __init__(self, schema: Schema) -> None:
        self._fields: dict[str, NestedField] = {}
        for field_id, field in schema.id_to_field.items():
            name = schema.find_column_name(field_id)
            if field.field_type.is_primitive and name is not None:
                self._fields[name] = field
        self._types = {name: _metrics_type(field) for name, field in self._fields.items()}
        self.type = pa.struct([pa.field(name, kind, nullable=False) for name, kind in self._types.items()])

    def column(self, entries: ManifestEntries) -> pa.StructArray:
        """The metrics of each file."""
        children = [self._of(entries, name) for name in self._fields]
        return struct_array(children, list(self.type), len(entries))

    def _of(self, entries: ManifestEntries, name: str) -> pa.StructArray:
        field, kind = self._fields[name], self._types[name]
        columns = [entries.statistic(number, field.field_id) for number in _COUNTS.values()]
        for number in _BOUNDS.values():
            columns.append(entries.bound(number, field.field_id, field.field_type, from_bytes_array))
        filled = [
            pa.nulls(len(entries), child.type) if column is None else column
            for column, child in zip(columns, kind, strict=True)
        ]
        return pa.StructArray.from_arrays(filled, fields=list(kind))


def _metrics_type(field: NestedField) -> pa.StructType:
    bound = to_arrow_type(field.field_type)
    return pa.struct([*((name, pa.int64()) for name in _COUNTS), *((name, bound) for name in _BOUNDS)])

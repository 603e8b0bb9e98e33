"""A plan as an Arrow table: no Python object for a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield.arrow_types import to_arrow_type
from icefield.manifest import schemas as f
from icefield.manifest.columns import COLUMN_TYPES, MAP_TYPES, struct_array
from icefield.scan.planned_files import PlannedFiles
from icefield.types import NestedField, StructType

_BEFORE: Final = {"content": f.CONTENT, "file_path": f.FILE_PATH, "file_format": f.FILE_FORMAT}
_AFTER: Final = {
    "record_count": f.RECORD_COUNT,
    "file_size_in_bytes": f.FILE_SIZE,
    "key_metadata": f.KEY_METADATA,
    "split_offsets": f.SPLIT_OFFSETS,
    "sort_order_id": f.SORT_ORDER_ID,
    "first_row_id": f.FIRST_ROW_ID,
    "snapshot_id": f.SNAPSHOT_ID,
    "data_sequence_number": f.SEQUENCE_NUMBER,
    "file_sequence_number": f.FILE_SEQUENCE_NUMBER,
}
_MAPS: Final = {
    "column_sizes": f.COLUMN_SIZES,
    "value_counts": f.VALUE_COUNTS,
    "null_value_counts": f.NULL_VALUE_COUNTS,
    "nan_value_counts": f.NAN_VALUE_COUNTS,
    "lower_bounds": f.LOWER_BOUNDS,
    "upper_bounds": f.UPPER_BOUNDS,
}
_DELETES: Final = pa.list_(pa.string())


class PlanTable:
    """Puts planned files into one table.

    ``partition_types``: the partition tuple of each spec of the table, by spec id. The column ``partition`` has every
    partition field of every spec once, by its id; a file's own spec is named in ``spec_id``.
    """

    def __init__(self, partition_types: Mapping[int, StructType], *, statistics: bool = False) -> None:
        united = united_partition_type(partition_types)
        self._places = {
            spec_id: [_place(kind, field) for field in united.fields] for spec_id, kind in partition_types.items()
        }
        self._partition: pa.StructType = to_arrow_type(united)
        self._columns: dict[str, int] = {**_AFTER, **(_MAPS if statistics else {})}
        types = {**COLUMN_TYPES, **MAP_TYPES}
        self.schema = pa.schema(
            [
                *((name, types[number]) for name, number in _BEFORE.items()),
                ("spec_id", pa.int32()),
                ("partition", self._partition),
                *((name, types[number]) for name, number in self._columns.items()),
                ("delete_files", _DELETES),
            ]
        )

    def table(self, planned: Iterable[PlannedFiles]) -> pa.Table:
        """The table of all files of a plan, in its order."""
        return pa.Table.from_batches([self._batch(one) for one in planned], schema=self.schema)

    def _batch(self, planned: PlannedFiles) -> pa.RecordBatch:
        entries = planned.entries
        count = len(entries)
        arrays = [entries.column(number) for number in _BEFORE.values()]
        arrays.append(pa.array(np.full(count, entries.spec_id, np.int32)))
        arrays.append(self._partitions(entries.spec_id, entries.partition))
        arrays.extend(entries.column(number) for number in self._columns.values())
        arrays.append(_delete_paths(planned))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _partitions(self, spec_id: int, partition: pa.StructArray) -> pa.StructArray:
        if partition.type == self._partition:
            return partition
        children = []
        for place, field in zip(self._places[spec_id], self._partition, strict=True):
            if place is None:
                children.append(pa.nulls(len(partition), field.type))
            else:
                child = partition.field(place)
                # The type of a column that the table has forgotten is the file's own.
                children.append(child if child.type == field.type else child.cast(field.type))
        return struct_array(children, list(self._partition), len(partition))


def united_partition_type(partition_types: Mapping[int, StructType]) -> StructType:
    """Every partition field of every spec once, by id; of two that share a name the older has its id added."""
    fields: dict[int, NestedField] = {}
    for spec_id in sorted(partition_types):
        fields.update((field.field_id, field) for field in partition_types[spec_id].fields)
    ordered = [fields[number] for number in sorted(fields)]
    latest = {field.name: field.field_id for field in ordered}
    return StructType(
        *(
            field
            if latest[field.name] == field.field_id
            else NestedField(field.field_id, f"{field.name}_{field.field_id}", field.field_type)
            for field in ordered
        )
    )


def _place(kind: StructType, wanted: NestedField) -> int | None:
    return next((i for i, field in enumerate(kind.fields) if field.field_id == wanted.field_id), None)


def _delete_paths(planned: PlannedFiles) -> pa.Array:
    count = len(planned)
    if not planned.deletes:
        return _empty_lists(count)
    paths: list[Any] = [[file.file_path for file in planned.delete_files(row)] for row in range(count)]
    return pa.array(paths, _DELETES)


@lru_cache(maxsize=64)
def _empty_lists(count: int) -> pa.Array:
    offsets = pa.array(np.zeros(count + 1, np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array([], pa.string()))

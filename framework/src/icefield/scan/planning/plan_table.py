"""A plan as an Arrow table, without a Python object for each file."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.manifest import DataFile
from icefield.manifest import schemas as f
from icefield.manifest.columns import COLUMN_TYPES, MAP_TYPES
from icefield.scan.partitions.united import UnitedPartition
from icefield.scan.planning.planned_files import PlannedFiles
from icefield.scan.served import ServedFiles

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
_OF_ENTRIES: Final = ("snapshot_id", "data_sequence_number", "file_sequence_number")
_DELETES: Final = pa.list_(pa.string())


class PlanTable:
    """Builds one table from planned files.

    ``partition``: the united partition tuple of all specs of the table. The column ``spec_id`` has the spec of a file.
    """

    def __init__(self, partition: UnitedPartition, *, statistics: bool = False) -> None:
        self._united = partition
        self._columns: dict[str, int] = {**_AFTER, **(_MAPS if statistics else {})}
        types = {**COLUMN_TYPES, **MAP_TYPES}
        self.schema = pa.schema(
            [
                *((name, types[number]) for name, number in _BEFORE.items()),
                ("spec_id", pa.int32()),
                ("partition", self._united.arrow_type),
                *((name, types[number]) for name, number in self._columns.items()),
                ("delete_files", _DELETES),
            ]
        )

    def table(self, parts: Iterable[PlannedFiles] | Iterable[ServedFiles]) -> pa.Table:
        """The table of all files of a plan, in its order; values that a service does not state are null."""
        batches = (self._served(part) if isinstance(part, ServedFiles) else self._planned(part) for part in parts)
        return pa.Table.from_batches(batches, schema=self.schema)

    def _served(self, part: ServedFiles) -> pa.RecordBatch:
        files = [part.file(row) for row in range(len(part))]
        arrays = []
        for field in self.schema:
            match field.name:
                case "partition":
                    array = self._served_partitions(files)
                case "delete_files":
                    paths = [[each.file_path for each in part.delete_files(row)] for row in range(len(part))]
                    array = pa.array(paths, _DELETES)
                case name if name in _MAPS:
                    array = pa.array([list(getattr(file, name).items()) for file in files], field.type)
                case name if name in _OF_ENTRIES:
                    array = pa.nulls(len(files), field.type)
                case name:
                    array = pa.array([getattr(file, name) for file in files], field.type)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _served_partitions(self, files: list[DataFile]) -> pa.Array:
        order: list[int] = []
        spec_ids = [file.spec_id for file in files]
        found = [pa.array([], self._united.arrow_type)] if not spec_ids else []
        for spec_id in sorted(set(spec_ids)):
            rows = [row for row, each in enumerate(spec_ids) if each == spec_id]
            order += rows
            found.append(self._united.of_values(spec_id, [files[row].partition for row in rows]))
        return pa.concat_arrays(found).take(pa.array(np.argsort(order), pa.int64()))

    def _planned(self, planned: PlannedFiles) -> pa.RecordBatch:
        entries = planned.entries
        spec_ids, no_deletes = _same_for_all(len(entries), entries.spec_id)
        arrays = [*(entries.column(number) for number in _BEFORE.values()), spec_ids]
        arrays.append(self._united.tuples(entries.spec_id, entries.partition))
        arrays.extend(entries.column(number) for number in self._columns.values())
        arrays.append(no_deletes if planned.deletes is None else planned.deletes.paths())
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


@lru_cache(maxsize=64)
def _same_for_all(count: int, spec_id: int) -> tuple[pa.Array, pa.Array]:
    """The spec of so many files, and no delete files."""
    no_paths = pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), pa.array([], pa.string()))
    return pa.array(np.full(count, spec_id, np.int32)), no_paths

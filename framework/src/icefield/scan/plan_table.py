"""A plan as an Arrow table: no Python object for a file."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.manifest import schemas as f
from icefield.manifest.columns import COLUMN_TYPES, MAP_TYPES
from icefield.scan.planned_files import PlannedFiles
from icefield.scan.united_partition import UnitedPartition

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

    ``partition``: the partition tuples of every spec of the table as one. A file's own spec is named in ``spec_id``.
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

    def table(self, planned: Iterable[PlannedFiles]) -> pa.Table:
        """The table of all files of a plan, in its order."""
        return pa.Table.from_batches([self._batch(one) for one in planned], schema=self.schema)

    def _batch(self, planned: PlannedFiles) -> pa.RecordBatch:
        entries = planned.entries
        count = len(entries)
        arrays = [entries.column(number) for number in _BEFORE.values()]
        arrays.append(pa.array(np.full(count, entries.spec_id, np.int32)))
        arrays.append(self._united.tuples(entries.spec_id, entries.partition))
        arrays.extend(entries.column(number) for number in self._columns.values())
        arrays.append(_delete_paths(planned))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _delete_paths(planned: PlannedFiles) -> pa.Array:
    return _empty_lists(len(planned)) if planned.deletes is None else planned.deletes.paths()


@lru_cache(maxsize=64)
def _empty_lists(count: int) -> pa.Array:
    offsets = pa.array(np.zeros(count + 1, np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array([], pa.string()))

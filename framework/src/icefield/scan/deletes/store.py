"""The deletes of a scan: each delete file is read once for all tasks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.base.concurrency import LruCache
from icefield.manifest import DataFile, DataFileContent
from icefield.scan.deletes.equality import EqualityDeletes, KeyLookup, key_ids
from icefield.scan.deletes.key_columns import with_dropped
from icefield.scan.deletes.keys import Mask
from icefield.scan.deletes.positions import NONE, Positions, read_position_deletes, read_vector
from icefield.scan.tasks import FileScanTask, ScanContext
from icefield.schema import Schema
from icefield.types.values import distinct

HELD_BYTES: Final = 256 << 20
"""The memory limit in bytes for positions, and for the keys of each set of equality columns."""

_WHOLE_ROWS: Final = 8 << 20
"""Larger position delete files are read separately for each data file."""

_MOST_SKIPPED: Final = 16 << 20
"""The maximum number of rows of a file for which skipped rows are listed."""

_MOST_EQUALITY: Final = 1 << 16
"""The maximum number of sets of equality columns whose keys are held."""

_MOST_SHARED: Final = 2
"""The number of scans with cached deletes in a process: an executor reads one scan after another, in chunks."""

_SHARED: Final[LruCache[str, DeleteStore]] = LruCache(_MOST_SHARED)

Passes = Callable[[], Iterator[KeyLookup]]


@dataclass(frozen=True, slots=True)
class TaskDeletes:
    """The deletes of one data file: positions, equality keys in memory, and equality keys to read in passes."""

    positions: Positions
    lookups: tuple[KeyLookup, ...] = ()
    passes: tuple[tuple[tuple[int, ...], Passes], ...] = ()

    @property
    def ids(self) -> frozenset[int]:
        """The equality columns of the keys in memory."""
        return frozenset(id_ for lookup in self.lookups for id_ in lookup.ids)

    @property
    def skipped(self) -> Positions | None:
        """Positions that need not be read; None if the reader must not skip any."""
        return self.positions

    def rows(self, schema: Schema, rows: pa.RecordBatch, positions: pa.Array | None) -> Mask | None:
        """Which rows of a batch are deleted; None for none. ``positions`` are the rows' positions in the file."""
        mask: Mask | None = None
        if positions is not None and len(self.positions) and rows.num_rows:
            mask = deleted_positions(positions.to_numpy(), self.positions)
        for lookup in self.lookups:
            found = lookup.matches(schema, rows)
            if len(found):
                mask = np.zeros(rows.num_rows, bool) if mask is None else mask
                mask[found] = True
        return mask


@dataclass(frozen=True, slots=True)
class OnlyRows(TaskDeletes):
    """All rows of a data file except those at ``positions``, as deletes. ``count``: the number of rows of the file."""

    count: int = -1

    @property
    def skipped(self) -> Positions | None:
        """Positions that need not be read; None for a large file or an unknown number of rows."""
        if not 0 <= self.count <= _MOST_SKIPPED:
            return None
        others = np.ones(self.count, bool)
        others[self.positions[self.positions < self.count]] = False
        return np.flatnonzero(others)

    def rows(self, schema: Schema, rows: pa.RecordBatch, positions: pa.Array | None) -> Mask | None:
        """Which rows of a batch are not at the kept positions."""
        if positions is None or not rows.num_rows:
            return None
        chosen = deleted_positions(positions.to_numpy(), self.positions)
        return np.ones(rows.num_rows, bool) if chosen is None else ~chosen


class DeleteStore:
    """The delete files of one scan. Threads may share it.

    Raises ``InvalidFile`` and ``InvalidMetadata`` for damaged files or metadata, and ``UnsupportedFeature``.
    """

    def __init__(self, context: ScanContext) -> None:
        self._context = context
        self._positions: LruCache[Hashable, Mapping[str, Positions]] = LruCache(HELD_BYTES, _size_of)
        self._equality: LruCache[tuple[int, ...], EqualityDeletes] = LruCache(_MOST_EQUALITY)

    def of(self, task: FileScanTask, file: DataFile) -> TaskDeletes | None:
        """The deletes of the file of a task; None without delete files."""
        if not task.delete_files:
            return None
        positions, by_ids = [], dict[tuple[int, ...], list[DataFile]]()
        # Thousands of small files may each apply to all data files: those already read are looked up in one step.
        held = self._positions.get_many(delete.file_path for delete in task.delete_files)
        for delete in task.delete_files:
            if (known := held.get(delete.file_path)) is not None:
                positions.append(known.get(file.file_path, NONE))
            elif delete.content is DataFileContent.EQUALITY_DELETES:
                by_ids.setdefault(key_ids(delete), []).append(delete)
            else:
                positions.append(self._of_file(delete, file))
        lookups: list[KeyLookup] = []
        passes: list[tuple[tuple[int, ...], Passes]] = []
        for ids, files in by_ids.items():
            deletes = self._by(ids)
            lookup = deletes.lookup(files)
            if lookup is None:
                passes.append((ids, partial(deletes.passes, files)))
            elif lookup.sets:
                lookups.append(lookup)
        found = [part for part in positions if len(part)]
        return TaskDeletes(distinct(*found) if found else NONE, tuple(lookups), tuple(passes))

    def table_schema(self, ids: Collection[int]) -> Schema:
        """The columns of the table, and the dropped columns among ``ids``."""
        return with_dropped(self._context.schema, self._context.dropped, ids)

    def _of_file(self, delete: DataFile, file: DataFile) -> Positions:
        io, path = self._context.io, file.file_path
        is_alone = delete.is_deletion_vector or delete.record_count > _WHOLE_ROWS

        def read() -> Mapping[str, Positions]:
            if delete.is_deletion_vector:
                return {path: read_vector(io, delete, file)}
            return read_position_deletes(io, delete, path if is_alone else None)

        key = (delete.file_path, delete.content_offset, path) if is_alone else delete.file_path
        return self._positions.get_or_make(key, read).get(path, NONE)

    def _by(self, ids: tuple[int, ...]) -> EqualityDeletes:
        io, mapping = self._context.io, self._context.name_mapping
        return self._equality.get_or_make(
            ids, lambda: EqualityDeletes(io, self.table_schema(ids), ids, mapping, HELD_BYTES)
        )


def shared_store(context: ScanContext) -> DeleteStore:
    """The shared store of a scan in this process, if the scan has an id; else a new store."""
    if context.scan_id is None:
        return DeleteStore(context)
    return _SHARED.get_or_make(context.scan_id, lambda: DeleteStore(context))


def deleted_positions(rows: Positions, deleted: Positions) -> Mask | None:
    """Which of some ascending positions are deleted; None for none."""
    first, last = int(rows[0]), int(rows[-1])
    low, high = np.searchsorted(deleted, (first, last + 1))
    if low == high:
        return None
    part = deleted[low:high]
    mask = np.zeros(len(rows), bool)
    if last - first + 1 == len(rows):
        mask[part - first] = True
    else:
        places = np.searchsorted(rows, part)
        mask[places[rows[places] == part]] = True
    return mask


def _size_of(made: Mapping[str, Positions]) -> int:
    return sum(part.nbytes + len(path) + 128 for path, part in made.items())

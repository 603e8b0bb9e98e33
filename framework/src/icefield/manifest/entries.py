"""The entries of one manifest in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield.manifest import schemas as f
from icefield.manifest.columns import ALL_COLUMNS, COLUMN_TYPES, DATA_FILE_IDS, MAP_TYPES, struct_array
from icefield.manifest.data_file import DataFile, DataFileContent, EntryStatus, files_of_columns
from icefield.manifest.manifest_file import ManifestFile
from icefield.manifest.statistics import map_column, map_columns, map_dicts
from icefield.types import IcebergType
from icefield.types.arrow.pieces import array_of, joined, numbers_of

_CONTENTS: Final = tuple(DataFileContent)
_NO_STATISTICS: Final[Mapping[int, Any]] = {}

StatisticKey = tuple[int, int] | tuple[int, int, IcebergType]
"""The id of a statistics map and that of the table's field; with a type, the bound decoded to it."""


class ManifestEntries:
    """Entries of one manifest as Arrow arrays of equal length, by field id; inherited values are filled in.

    ``columns`` holds the columns that were read and exist in the file; ``read`` names all requested columns. ``column``
    also answers for columns that the file lacks. ``statistics`` holds single fields taken out of the statistics maps,
    None if no entry has the field.
    """

    __slots__ = ("columns", "manifest", "num_rows", "read", "statistics")

    def __init__(
        self,
        manifest: ManifestFile,
        num_rows: int,
        columns: dict[int, pa.Array],
        statistics: dict[StatisticKey, pa.Array | None] | None = None,
        read: frozenset[int] = ALL_COLUMNS,
    ) -> None:
        self.manifest = manifest
        self.num_rows = num_rows
        self.columns = columns
        self.read = read
        self.statistics = {} if statistics is None else statistics

    def __len__(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        return f"ManifestEntries({self.manifest.manifest_path!r}, num_rows={self.num_rows})"

    @property
    def spec_id(self) -> int:
        """The partition spec of every file here."""
        return self.manifest.partition_spec_id

    @property
    def nbytes(self) -> int:
        """Bytes of the columns. Of a buffer that several manifests share, only the part of this manifest is counted."""
        single = [array for array in list(self.statistics.values()) if array is not None]
        arrays = [*self.columns.values(), *single]
        # A bound is decoded when it is first needed, and then kept next to the encoded one.
        return 200 * len(arrays) + sum(int(array.nbytes) for array in (*arrays, *single))

    @property
    def partition(self) -> pa.StructArray:
        """The partition tuples, named by the spec."""
        found = self.columns.get(f.PARTITION)
        return struct_array([], [], self.num_rows) if found is None else found

    def column(self, number: int) -> pa.Array:
        """A column by field id; nulls, or the default, when the file does not have it."""
        found = self.columns.get(number)
        if found is not None:
            return found
        if number == f.CONTENT:
            return array_of(np.zeros(self.num_rows, np.int32))
        if number == f.PARTITION:
            return self.partition
        return pa.nulls(self.num_rows, COLUMN_TYPES.get(number) or MAP_TYPES[number])

    def statistic(self, kind: int, field_id: int) -> pa.Array | None:
        """One field's count or encoded bound for each file; None when no file has it or it was not read."""
        key = (kind, field_id)
        if key not in self.statistics:
            maps = self.columns.get(kind)
            if maps is None:
                return None
            self.statistics[key] = map_column(maps, field_id)
        return self.statistics[key]

    def gather(self, kind: int, field_ids: Iterable[int]) -> None:
        """Extract the statistics of several fields from a map at once, for later use by ``statistic`` and ``bound``."""
        maps = self.columns.get(kind)
        missing = [number for number in field_ids if (kind, number) not in self.statistics]
        if maps is not None and missing:
            for number, found in map_columns(maps, missing).items():
                self.statistics[(kind, number)] = found

    def bound(
        self, kind: int, field_id: int, iceberg_type: IcebergType, decode: Callable[[IcebergType, pa.Array], pa.Array]
    ) -> pa.Array | None:
        """One field's bound for each file, decoded to the field's Arrow type; kept for the next plan."""
        key = (kind, field_id, iceberg_type)
        if key not in self.statistics:
            encoded = self.statistic(kind, field_id)
            if encoded is None:  # it may be read later, for another reader of the same dict
                return None
            self.statistics[key] = decode(iceberg_type, encoded)
        return self.statistics[key]

    def gather_bounds(
        self,
        kind: int,
        types: Mapping[int, IcebergType],
        decode: Callable[[IcebergType, pa.Array], pa.Array],
    ) -> None:
        """Decode the bounds of several fields, one call a type, for later use by ``bound``."""
        by_type: dict[IcebergType, list[tuple[int, pa.Array]]] = {}
        for field_id, iceberg_type in types.items():
            encoded = self.statistic(kind, field_id)
            if encoded is not None and (kind, field_id, iceberg_type) not in self.statistics:
                by_type.setdefault(iceberg_type, []).append((field_id, encoded))
        for iceberg_type, columns in by_type.items():
            together = decode(iceberg_type, pa.concat_arrays([encoded for _, encoded in columns]))
            for place, (field_id, _) in enumerate(columns):
                self.statistics[(kind, field_id, iceberg_type)] = together.slice(place * len(self), len(self))

    def status(self) -> np.ndarray[Any, Any]:
        """The status of each entry."""
        return numbers_of(self.columns[f.STATUS])

    def live(self) -> np.ndarray[Any, Any] | None:
        """Which entries are not DELETED; None when all are live."""
        live = self.status() != EntryStatus.DELETED
        return None if live.all() else live

    def filter(self, mask: np.ndarray[Any, Any] | None) -> ManifestEntries:
        """The entries where the mask is true, in order; self when the mask is None or true throughout."""
        if mask is None or mask.all():
            return self
        return self.take(np.flatnonzero(mask))

    def take(self, indices: np.ndarray[Any, Any]) -> ManifestEntries:
        """The entries at these positions, in this order."""
        chosen = array_of(indices)
        return ManifestEntries(
            self.manifest,
            len(indices),
            {number: take(array, chosen) for number, array in self.columns.items()},
            {key: None if array is None else array.take(chosen) for key, array in list(self.statistics.items())},
            self.read,
        )

    def slice(self, start: int, count: int | None = None) -> ManifestEntries:
        """The entries from ``start`` on, at most ``count``, without a copy."""
        columns = {number: array.slice(start, count) for number, array in self.columns.items()}
        held = list(self.statistics.items())
        single = {key: None if array is None else array.slice(start, count) for key, array in held}
        rest = max(0, self.num_rows - start)
        return ManifestEntries(self.manifest, rest if count is None else min(rest, count), columns, single, self.read)

    def select(self, numbers: frozenset[int]) -> ManifestEntries:
        """The entries with these columns only, and without single statistics."""
        columns = {number: array for number, array in self.columns.items() if number in numbers}
        return ManifestEntries(self.manifest, self.num_rows, columns, None, self.read & numbers)

    @classmethod
    def concat(cls, parts: Sequence[ManifestEntries]) -> ManifestEntries:
        """The entries of manifests of one spec and content, one after another, under the first manifest.

        Single statistics are left out. At least one manifest is given.
        """
        if len(parts) == 1:
            return parts[0]
        numbers = frozenset(number for part in parts for number in part.columns)
        count = sum(map(len, parts))
        columns = {number: _joined([part.column(number) for part in parts], count) for number in numbers}
        return cls(parts[0].manifest, count, columns, None, frozenset.intersection(*(part.read for part in parts)))

    def data_files(self) -> Iterator[DataFile]:
        """Each entry's file as an object, with the statistics that were read as whole maps."""
        columns: dict[str, Iterable[Any]] = {
            "partition": partition_tuples(self.partition),
            "spec_id": repeat(self.spec_id, self.num_rows),
            "content": map(_CONTENTS.__getitem__, _listed(self.column(f.CONTENT))),
        }
        for name, number in DATA_FILE_IDS.items():
            held = self.columns.get(number)
            if held is None or name in columns:
                continue
            if number in MAP_TYPES:
                columns[name] = (_NO_STATISTICS if found is None else found for found in map_dicts(held))
            elif pa.types.is_list(held.type):
                columns[name] = (None if found is None else tuple(found) for found in _listed(held))
            else:
                columns[name] = _listed(held)
        return iter(files_of_columns(self.num_rows, columns))


def take(array: pa.Array, indices: pa.Array) -> pa.Array:
    """``array.take``, also for a struct without fields."""
    if pa.types.is_struct(array.type) and array.type.num_fields == 0:
        return struct_array([], [], len(indices))
    return array.take(indices)


def _joined(arrays: Sequence[pa.Array], count: int) -> pa.Array:
    """Concatenate arrays of one type, also structs without fields, for which Arrow loses the length."""
    kind = arrays[0].type
    return struct_array([], [], count) if pa.types.is_struct(kind) and kind.num_fields == 0 else joined(arrays)


def values_of(array: pa.Array) -> list[Any]:
    """The internal values of a column: dates, times and timestamps as integers, everything else as Python has it."""
    kind = array.type
    if pa.types.is_temporal(kind):
        return list(array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist())
    return list(array.to_pylist())


def partition_tuples(partition: pa.StructArray) -> list[tuple[Any, ...]]:
    """The partition tuples as internal values."""
    children = [values_of(partition.field(position)) for position in range(partition.type.num_fields)]
    return list(zip(*children, strict=True)) if children else [()] * len(partition)


def _listed(column: pa.Array) -> list[Any]:
    """The values of a column. Columns of nulls only, and integers without nulls, are not converted value by value."""
    if column.null_count == len(column):
        return [None] * len(column)
    if column.null_count == 0 and pa.types.is_integer(column.type):
        return list(numbers_of(column).tolist())
    return list(column.to_pylist())

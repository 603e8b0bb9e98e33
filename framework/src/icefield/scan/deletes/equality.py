"""Equality delete files: their keys in memory, shared by the tasks of a scan, or read in several passes.

Spec: "Equality Delete Files". The keys of a partition's delete files with the same equality columns are stored
together. Each key has the numbers of its files, since nearly every data file has a different set of delete files.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.abc import ReadRequest
from icefield.base.concurrency import reset_after_fork
from icefield.errors import InvalidFile, InvalidMetadata
from icefield.manifest import DataFile
from icefield.partitioning.spec import normalised_key
from icefield.scan.columns.projection import ColumnProjection
from icefield.scan.deletes.key_columns import columns_of
from icefield.scan.deletes.keys import Ints, KeySet, Mask, check_type, hash_keys
from icefield.scan.opening import deleted_rows, open_file
from icefield.schema import NameMapping, Schema
from icefield.storage import FileIO
from icefield.types.arrow.equality import plain
from icefield.types.arrow.types import child_fields, field_id

_MOST_SETS: Final = 4
"""The maximum number of key sets to look up a batch in. Later delete files form a new set; smaller sets are merged."""

_BYTES_A_KEY: Final = 24
"""The size of a key in bytes, without its values."""


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """The equality keys that apply to a task."""

    ids: tuple[int, ...]
    schema: Schema
    sets: tuple[tuple[KeySet, Mask | None], ...]

    def matches(self, schema: Schema, rows: pa.RecordBatch) -> Ints:
        """The indexes of the deleted rows; ``schema`` is the schema of the rows."""
        columns = [plain(column) for column in columns_of(schema, rows, self.ids)]
        hashes = hash_keys(columns, [self.schema.find_type(id_) for id_ in self.ids])
        return np.concatenate([keys.matches(hashes, columns, applying) for keys, applying in self.sets])


class EqualityDeletes:
    """The equality delete files of a scan with the equality columns ``ids``.

    ``most`` is the memory limit for keys, in bytes. Threads may share it.
    """

    def __init__(
        self, io: FileIO, schema: Schema, ids: tuple[int, ...], mapping: NameMapping | None, most: int
    ) -> None:
        self._io = io
        self._ids = ids
        self._mapping = mapping
        self._most = most
        self._schema = schema.select_ids(ids)
        self._types = [self._schema.find_type(id_) for id_ in ids]
        self._begin()
        reset_after_fork(self._begin)

    def _begin(self) -> None:
        self._lock = Lock()
        self._numbers: dict[str, int] = {}
        self._partitions: dict[Hashable, int] = {}
        self._partition_of: Ints = np.zeros(0, np.int64)
        self._sets: dict[int, tuple[KeySet, ...]] = {}
        self._held = 0

    def lookup(self, files: Sequence[DataFile]) -> KeyLookup | None:
        """The keys of some files; None if they do not fit into memory."""
        if sum(max(0, file.record_count) for file in files) * _BYTES_A_KEY > self._most:
            return None
        with self._lock:
            if not self._hold(files):
                return None
            numbers = [self._numbers[file.file_path] for file in files]
            applying = np.zeros(len(self._numbers), bool)
            applying[numbers] = True
            partitions = np.unique(self._partition_of[numbers]).tolist()
            sets = [keys for partition in partitions for keys in self._sets.get(partition, ())]
            everything = bool(applying.all())
            return KeyLookup(self._ids, self._schema, tuple((keys, None if everything else applying) for keys in sets))

    def passes(self, files: Sequence[DataFile]) -> Iterator[KeyLookup]:
        """The keys of some files, in parts that fit into memory."""
        for found in self._read(files, dict.fromkeys((file.file_path for file in files), (0, 0))):
            if found:
                yield KeyLookup(self._ids, self._schema, tuple((keys, None) for keys in found.values()))

    def _hold(self, files: Sequence[DataFile]) -> bool:
        new = [file for file in files if file.file_path not in self._numbers]
        if not new:
            return True
        made = self._make(new)
        if made is not None and self._held + sum(keys.nbytes for keys in made.values()) > self._most and self._sets:
            # Drop all keys in memory, and read only the keys of these files again.
            self._numbers, self._sets, self._held = {}, {}, 0
            self._partitions, self._partition_of = {}, self._partition_of[:0]
            made = self._make(files)
        if made is None:
            return False
        for partition, keys in made.items():
            before = self._sets.get(partition, ())
            sets = sorted((*before, keys), key=len, reverse=True)
            while len(sets) > _MOST_SETS or (len(sets) > 1 and len(sets[-2]) < 2 * len(sets[-1])):
                sets[-2:] = [sets[-2].united(sets[-1])]
            self._sets[partition] = tuple(sets)
            self._held += sum(each.nbytes for each in sets) - sum(each.nbytes for each in before)
        return True

    def _make(self, files: Sequence[DataFile]) -> dict[int, KeySet] | None:
        """The keys of files by partition; None if they do not fit into memory. Assigns a number to each file."""
        each = {file.file_path: file for file in files}
        keys = [(file.spec_id, normalised_key(file.partition)) for file in each.values()]
        partitions = [self._partitions.setdefault(key, len(self._partitions)) for key in keys]
        first = len(self._numbers)
        owners = {path: (first + at, partitions[at]) for at, path in enumerate(each)}
        found = self._read([*each.values()], owners)
        made = next(found)
        if next(found, None) is not None:
            return None
        self._numbers.update((path, number) for path, (number, _) in owners.items())
        self._partition_of = np.concatenate((self._partition_of, np.array(partitions, np.int64)))
        return made

    def _read(self, files: Sequence[DataFile], owners: dict[str, tuple[int, int]]) -> Iterator[dict[int, KeySet]]:
        """The keys of files in sets by partition, within the memory limit; yields at least once.

        ``owners`` has the number and the partition of each file.
        """
        parts: dict[int, list[tuple[list[pa.Array], int]]] = {}
        size = 0
        for file in files:
            number, partition = owners[file.file_path]
            for columns in self._columns(file):
                if len(columns[0]):
                    parts.setdefault(partition, []).append((columns, number))
                size += sum(column.nbytes for column in columns) + _BYTES_A_KEY * len(columns[0])
                if size > self._most:
                    yield {partition: self._set(some) for partition, some in parts.items()}
                    parts, size = {}, 0
        if parts or size == 0:
            yield {partition: self._set(some) for partition, some in parts.items()}

    def _set(self, parts: list[tuple[list[pa.Array], int]]) -> KeySet:
        columns = [pa.concat_arrays(pieces) for pieces in zip(*(piece for piece, _ in parts), strict=True)]
        numbers = np.array([number for _, number in parts], np.int32)
        return KeySet(columns, self._types, np.repeat(numbers, [len(piece[0]) for piece, _ in parts]))

    def _columns(self, file: DataFile) -> Iterator[list[pa.Array]]:
        location = file.file_path
        for kind in self._types:
            check_type(kind, location)
        with open_file(self._io, file) as reader:
            held = reader.schema if self._mapping is None else self._mapping.apply(reader.schema)
            there = _ids_of(list(held))
            lacking = [id_ for id_ in self._ids if id_ not in there]
            if lacking:
                raise InvalidFile(
                    f"{location} deletes rows by field {lacking[0]}, of which it has no column", location=location
                )
            projection = ColumnProjection.resolve(self._schema, held, location=location)
            for batch in deleted_rows(self._io, file, reader, ReadRequest(projection.file_columns)):
                rows = projection.apply(batch)
                yield [plain(column) for column in columns_of(self._schema, rows, self._ids)]


def key_ids(file: DataFile) -> tuple[int, ...]:
    """The sorted equality column ids of an equality delete file. Raises ``InvalidMetadata`` if it has none."""
    if not file.equality_ids:
        raise InvalidMetadata(
            f"{file.file_path} deletes rows by equality, and its manifest names no column", location=file.file_path
        )
    return tuple(sorted(set(file.equality_ids)))


def _ids_of(fields: Sequence[pa.Field]) -> set[int]:
    found = {id_ for field in fields if (id_ := field_id(field)) is not None}
    return found.union(*(_ids_of(child_fields(field.type)) for field in fields if pa.types.is_struct(field.type)))

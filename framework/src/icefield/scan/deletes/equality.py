"""Equality delete files: their keys in memory, shared by the tasks of a scan, or handed out in passes.

Spec: "Equality Delete Files". The keys of all files that find rows by the same columns are together, each with the
number of its file, since nearly every data file has other delete files that apply to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.abc import ReadRequest
from icefield.base import reset_after_fork
from icefield.errors import InvalidFile, InvalidMetadata
from icefield.manifest import DataFile
from icefield.scan.column_projection import ColumnProjection
from icefield.scan.deletes.key_columns import column_of
from icefield.scan.deletes.keys import Ints, KeySet, Mask, check_type, hash_keys, plain
from icefield.scan.opening import counted, open_file
from icefield.schema import NameMapping, Schema
from icefield.storage import FileIO
from icefield.types.arrow.types import child_fields, field_id

_MOST_SETS: Final = 4
"""Sets of keys that a batch is looked up in: files that are met later make a new one, until these are united."""

_BYTES_A_KEY: Final = 24
"""What a key takes besides its values."""


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """The keys of the delete files of a task."""

    ids: tuple[int, ...]
    schema: Schema
    sets: tuple[tuple[KeySet, Mask | None], ...]

    def matches(self, schema: Schema, rows: pa.RecordBatch) -> Ints:
        """The places of the rows that are deleted; ``schema`` is theirs."""
        columns = [plain(column_of(schema, rows, id_)) for id_ in self.ids]
        hashes = hash_keys(columns, [self.schema.find_type(id_) for id_ in self.ids])
        return np.concatenate([keys.matches(hashes, columns, applying) for keys, applying in self.sets])


class EqualityDeletes:
    """The equality delete files of a scan that find rows by the columns ``ids`` of a schema.

    ``most`` is how many bytes of keys are held. Threads may share it.
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
        self._sets: tuple[KeySet, ...] = ()

    def lookup(self, files: Sequence[DataFile]) -> KeyLookup | None:
        """The keys of some files; None where they do not fit into memory."""
        if sum(max(0, file.record_count) for file in files) * _BYTES_A_KEY > self._most:
            return None
        with self._lock:
            if not self._hold(files):
                return None
            applying = np.zeros(len(self._numbers), bool)
            applying[[self._numbers[file.file_path] for file in files]] = True
            everything = bool(applying.all())
            return KeyLookup(
                self._ids, self._schema, tuple((keys, None if everything else applying) for keys in self._sets)
            )

    def passes(self, files: Sequence[DataFile]) -> Iterator[KeyLookup]:
        """The keys of some files, as many at a time as fit into memory."""
        for keys in self._read(files, dict.fromkeys((file.file_path for file in files), 0)):
            yield KeyLookup(self._ids, self._schema, ((keys, None),))

    def _hold(self, files: Sequence[DataFile]) -> bool:
        new = [file for file in files if file.file_path not in self._numbers]
        if not new:
            return True
        made = self._make(new)
        held = sum(keys.nbytes for keys in self._sets)
        if made is not None and held + made.nbytes > self._most and self._sets:
            # Those of other partitions, or of newer files, make room.
            self._numbers, self._sets = {}, ()
            made = self._make(files)
        if made is None:
            return False
        sets = [*self._sets, made] if len(made) else [*self._sets]
        sets.sort(key=len, reverse=True)
        while len(sets) > _MOST_SETS or (len(sets) > 1 and len(sets[-2]) < 2 * len(sets[-1])):
            sets[-2:] = [sets[-2].united(sets[-1])]
        self._sets = tuple(sets)
        return True

    def _make(self, files: Sequence[DataFile]) -> KeySet | None:
        """The keys of files in one set, and a number for each file; None where they are too many."""
        numbers = {file.file_path: len(self._numbers) + place for place, file in enumerate(files)}
        sets = self._read(files, numbers)
        made = next(sets)
        if next(sets, None) is not None:
            return None
        self._numbers.update(numbers)
        return made

    def _read(self, files: Sequence[DataFile], numbers: dict[str, int]) -> Iterator[KeySet]:
        """The keys of files in sets of no more bytes than are to be held; at least one set."""
        parts: list[list[pa.Array]] = []
        owners: list[np.ndarray[tuple[int], np.dtype[np.int32]]] = []
        size = 0
        for file in files:
            for columns in self._columns(file):
                parts.append(columns)
                owners.append(np.full(len(columns[0]), numbers[file.file_path], np.int32))
                size += sum(column.nbytes for column in columns) + _BYTES_A_KEY * len(columns[0])
                if size > self._most:
                    yield self._set(parts, owners)
                    parts, owners, size = [], [], 0
        if parts or size == 0:
            yield self._set(parts, owners)

    def _set(self, parts: list[list[pa.Array]], owners: list[np.ndarray[tuple[int], np.dtype[np.int32]]]) -> KeySet:
        if not parts:
            empty = ColumnProjection.resolve(self._schema, pa.schema([]), dict.fromkeys(self._schema.field_ids))
            none = pa.RecordBatch.from_pylist([], schema=empty.schema)
            parts, owners = [[plain(column_of(self._schema, none, id_)) for id_ in self._ids]], [np.zeros(0, np.int32)]
        columns = [pa.concat_arrays(pieces) for pieces in zip(*parts, strict=True)]
        return KeySet(columns, self._types, np.concatenate(owners))

    def _columns(self, file: DataFile) -> Iterator[list[pa.Array]]:
        location = file.file_path
        for kind in self._types:
            check_type(kind, location)
        with open_file(self._io, file) as reader:
            held = reader.schema if self._mapping is None else self._mapping.apply(reader.schema)
            lacking = [id_ for id_ in self._ids if id_ not in _ids_of(list(held))]
            if lacking:
                raise InvalidFile(
                    f"{location} deletes rows by field {lacking[0]}, of which it has no column", location=location
                )
            projection = ColumnProjection.resolve(self._schema, held, location=location)
            for batch in counted(file, reader, ReadRequest(projection.file_columns)):
                rows = projection.apply(batch)
                yield [plain(column_of(self._schema, rows, id_)) for id_ in self._ids]


def key_ids(file: DataFile) -> tuple[int, ...]:
    """The ids of the columns by which an equality delete file finds rows. Raises ``InvalidMetadata`` for none."""
    if not file.equality_ids:
        raise InvalidMetadata(
            f"{file.file_path} deletes rows by equality, and its manifest names no column", location=file.file_path
        )
    return tuple(sorted(set(file.equality_ids)))


def _ids_of(fields: Sequence[pa.Field]) -> set[int]:
    found = {id_ for field in fields if (id_ := field_id(field)) is not None}
    return found.union(*(_ids_of(child_fields(field.type)) for field in fields if pa.types.is_struct(field.type)))

"""Positions of deleted rows: position delete files and deletion vectors.

Spec: "Position Delete Files" and "Deletion Vectors". The paths of data files and deletes are compared byte for byte. A
position delete file may contain a position twice, or a position beyond the end of the data file. A deletion vector
belongs to one data file, so a position beyond the end of this file means damage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.abc import FormatAbility, ReadRequest
from icefield.base.concurrency import LruCache
from icefield.base.limits import MAX_DELETED_POSITIONS, MAX_PUFFIN_BLOB_BYTES
from icefield.errors import InvalidFile, InvalidMetadata
from icefield.expressions import BooleanExpression, EqualTo, bind, relocate
from icefield.manifest import DataFile
from icefield.puffin import decode_vector, read_range
from icefield.scan.columns.projection import ColumnProjection
from icefield.scan.opening import deleted_rows, open_file
from icefield.schema import Schema
from icefield.storage import FileIO
from icefield.types.reserved import DELETE_FILE_PATH, DELETE_FILE_POS
from icefield.types.values import distinct

Positions = npt.NDArray[np.int64]
"""Positions in one data file, ascending and distinct."""

NONE: Final[Positions] = np.zeros(0, np.int64)

_COLUMNS: Final = Schema(DELETE_FILE_PATH, DELETE_FILE_POS)
_BATCH_ROWS: Final = 1 << 20

_FEW_ROWS: Final = 1 << 12
"""Up to this number of rows a dictionary of the paths costs more than it saves."""

_PROJECTIONS: Final[LruCache[bytes, ColumnProjection]] = LruCache(64)


def read_vector(io: FileIO, vector: DataFile, file: DataFile | None = None) -> Positions:
    """The positions in a deletion vector. They must be within its data file, if ``file`` is given.

    Raises ``InvalidFile`` for damage, and ``InvalidMetadata`` for an entry without the offset or the size of the
    vector.
    """
    offset, length, location = vector.content_offset, vector.content_size_in_bytes, vector.file_path
    if offset is None or length is None or offset < 0 or length < 0:
        raise InvalidMetadata(f"{location}: its manifest does not state where a deletion vector is", location=location)
    if length > MAX_PUFFIN_BLOB_BYTES:
        raise InvalidFile(f"{location}: a deletion vector of {length:,} bytes", location=location)
    with closing(io.open_input(location, vector.key_metadata)) as source:
        blob = read_range(source, offset, length, location)
    counts = (vector.record_count, -1 if file is None else file.record_count)
    cardinality, most = (count if count >= 0 else None for count in counts)
    return decode_vector(blob, location, cardinality=cardinality, most=most)


def read_position_deletes(io: FileIO, file: DataFile, path: str | None = None) -> Mapping[str, Positions]:
    """The positions in a position delete file, by data file; only the positions of ``path``, if it is given.

    Raises ``InvalidFile``.
    """
    found: dict[str, list[npt.NDArray[np.int64]]] = {}
    total = 0
    for paths, positions in position_delete_batches(io, file, path):
        for name, part in _by_path(paths, positions):
            if path is None or name == path:
                total += len(part)
                found.setdefault(name, []).append(part)
        if total > MAX_DELETED_POSITIONS:
            raise InvalidFile(
                f"{file.file_path} deletes more than {MAX_DELETED_POSITIONS:,} rows", location=file.file_path
            )
    return {name: distinct(*parts) for name, parts in found.items()}


def position_delete_batches(
    io: FileIO, file: DataFile, path: str | None = None
) -> Iterator[tuple[pa.Array, npt.NDArray[np.int64]]]:
    """The rows of a position delete file: paths, which may be a dictionary, and positions.

    Rows without a path apply to no file and are left out. With ``path`` only this data file is needed, but rows of
    other files may be returned. Raises ``InvalidFile``.
    """
    for paths, positions in stored_position_deletes(io, file, path):
        yield named_positions(file, paths, positions)


def stored_position_deletes(io: FileIO, file: DataFile, path: str | None = None) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The paths and positions of a position delete file as stored, including nulls."""
    abilities = io.file_format(file.file_format).abilities
    with open_file(io, file) as reader:
        projection = _projection(file, reader.schema)
        columns = projection.file_columns
        has_dictionaries = FormatAbility.DICTIONARIES in abilities and file.record_count > _FEW_ROWS
        row_filter: BooleanExpression | None = None
        if path is not None and FormatAbility.FILTERS in abilities:
            row_filter = relocate(bind(_COLUMNS, EqualTo(DELETE_FILE_PATH.name, path)), columns)
        request = ReadRequest(
            columns,
            row_filter=row_filter,
            batch_rows=_BATCH_ROWS,
            dictionaries=projection.held_dictionaries if has_dictionaries else frozenset(),
        )
        for batch in deleted_rows(io, file, reader, request):
            paths, positions = projection.apply(batch).columns
            yield paths, positions


def _projection(file: DataFile, file_schema: pa.Schema) -> ColumnProjection:
    """The projection to the two columns, cached by file schema."""
    key = file_schema.serialize().to_pybytes()  # schemas are equal without their field ids
    known = _PROJECTIONS.get(key)
    if known is None:
        paths = frozenset({DELETE_FILE_PATH.field_id})
        known = ColumnProjection.resolve(_COLUMNS, file_schema, location=file.file_path, dictionaries=paths)
        _PROJECTIONS.put(key, known)
    return known.at(file.file_path)


def named_positions(file: DataFile, paths: pa.Array, positions: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The rows with a path. Raises ``InvalidFile`` for a null or negative position."""
    if paths.null_count:
        named = paths.is_valid()
        paths, positions = paths.filter(named), positions.filter(named)
    if positions.null_count:
        raise InvalidFile(f"{file.file_path} deletes a row without a position", location=file.file_path)
    values = positions.to_numpy()
    if len(values) and values.min() < 0:
        raise InvalidFile(f"{file.file_path} deletes a row at {values.min()}", location=file.file_path)
    return paths, values


def _by_path(paths: Any, positions: npt.NDArray[np.int64]) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """The positions of a batch, grouped by path; the rows of one path need not be adjacent."""
    indices = paths.indices.to_numpy()
    if not len(indices):
        return
    if np.any(indices[1:] < indices[:-1]):
        order = np.argsort(indices, kind="stable")
        indices, positions = indices[order], positions[order]
    starts = np.concatenate(([0], np.flatnonzero(np.diff(indices)) + 1, [len(indices)]))
    names = paths.dictionary.take(pa.array(indices[starts[:-1]])).to_pylist()
    for name, start, end in zip(names, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        yield name, positions[start:end]

"""The data file of position deletes that are for one data file alone."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.manifest import DataFile, DataFileContent, ManifestEntries
from icefield.manifest import schemas as f
from icefield.scan.deletes.scopes import Mask
from icefield.types.reserved import DELETE_FILE_PATH

DELETE_STATISTICS: Final = {
    f.LOWER_BOUNDS: frozenset({DELETE_FILE_PATH.field_id}),
    f.UPPER_BOUNDS: frozenset({DELETE_FILE_PATH.field_id}),
}
"""The statistics of delete files that tell their data files: the bounds of the paths in position delete files."""

_BOUNDS: Final = (f.LOWER_BOUNDS, f.UPPER_BOUNDS)


def data_file_of(file: DataFile) -> str | None:
    """The only data file whose rows a deletion vector or a position delete file deletes; None for any other file."""
    if file.content is not DataFileContent.POSITION_DELETES:
        return None
    if file.referenced_data_file or file.is_deletion_vector:
        return file.referenced_data_file or None
    low, high = (bounds.get(DELETE_FILE_PATH.field_id) for bounds in (file.lower_bounds, file.upper_bounds))
    return bytes(low).decode(errors="replace") if low and low == high else None


def data_files_of(entries: ManifestEntries) -> pa.StringArray:
    """``data_file_of`` for entries of a delete manifest that were read with ``DELETE_STATISTICS``."""
    positions = np.asarray(entries.column(f.CONTENT)) == DataFileContent.POSITION_DELETES
    is_vector = positions & vectors(entries.column(f.FILE_FORMAT))
    found = data_files(is_vector, without_empty(entries.column(f.REFERENCED_DATA_FILE)), *path_bounds([entries]))
    return pc.if_else(pa.array(positions), found, None)


def data_files(
    is_vector: Mask, referenced: pa.StringArray, low: pa.BinaryArray, high: pa.BinaryArray
) -> pa.StringArray:
    """The only data file of each position delete file; null if there are several or if it is unknown."""
    # Equal bounds mean that the file has a single path. Invalid UTF-8 matches no data file.
    same = pc.if_else(pc.equal(low, high), low, None)
    options = pc.CastOptions(target_type=pa.string(), allow_invalid_utf8=True)
    return pc.if_else(pa.array(is_vector), referenced, pc.coalesce(referenced, pc.cast(same, options=options)))


def vectors(formats: pa.StringArray) -> Mask:
    """Which files of these formats are deletion vectors."""
    return np.asarray(pc.equal(pc.utf8_lower(formats), "puffin"))


def without_empty(referenced: pa.StringArray) -> pa.StringArray:
    """The referenced data files, with null for an empty name."""
    return _without(pc.equal(referenced, ""), referenced)


def path_bounds(parts: list[ManifestEntries]) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Bounds of the paths in delete files.

    Invalid bounds, with no path between them, become unknown, since the file still deletes rows.
    """
    low, high = (_bounds(parts, kind) for kind in _BOUNDS)
    wrong = pc.or_kleene(pc.greater(low, high), pc.equal(high, b""))
    return _without(wrong, low), _without(wrong, high)


def _bounds(parts: list[ManifestEntries], kind: int) -> pa.BinaryArray:
    found = (part.statistic(kind, DELETE_FILE_PATH.field_id) for part in parts)
    bounds = [pa.nulls(len(part)) if one is None else one for part, one in zip(parts, found, strict=True)]
    return pa.concat_arrays([one.cast(pa.binary()) for one in bounds])


def _without(wrong: pa.BooleanArray, values: pa.Array) -> pa.Array:
    """The values, with null where ``wrong`` is true."""
    wrong = pc.fill_null(wrong, False)
    return pc.if_else(wrong, pa.scalar(None, values.type), values) if pc.any(wrong).as_py() else values

"""Inheritance of manifest entries from their manifest: sequence numbers, snapshot id and first row id.

Spec: "Sequence Number Inheritance", "First Row ID Inheritance". Manifests of version 1 have no sequence columns: all
their files have number 0. Otherwise only ADDED entries inherit, so that a manifest can be written before the sequence
number of its snapshot is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import InvalidMetadata
from icefield.manifest import schemas as f
from icefield.manifest.data_file import EntryStatus
from icefield.manifest.manifest_file import UNASSIGNED, ManifestContent, ManifestFile
from icefield.types.arrow.pieces import array_of, numbers_of

_TOO_MANY = 2.0**63
_SEQUENCES = (f.SEQUENCE_NUMBER, f.FILE_SEQUENCE_NUMBER)


def inherit(
    columns: dict[int, pa.Array],
    wanted: frozenset[int],
    manifests: Sequence[ManifestFile],
    rows: Sequence[int],
    format_version: int,
) -> None:
    """Fill in, in place, the snapshot ids and sequence numbers that the wanted columns inherit.

    The columns hold the entries of several manifests, one after another: ``rows`` of each.
    Raises ``InvalidMetadata`` for an EXISTING entry without sequence numbers.
    """
    status = numbers_of(columns[f.STATUS])
    if f.SNAPSHOT_ID in wanted:
        stored = columns.get(f.SNAPSHOT_ID)
        if stored is None or stored.null_count:
            ids = np.repeat(np.array([one.added_snapshot_id for one in manifests], np.int64), rows)
            columns[f.SNAPSHOT_ID] = _filled(stored, ids)
    unnumbered = format_version == 1 and not any(number in columns for number in _SEQUENCES)
    given = [0 if unnumbered else one.sequence_number for one in manifests]
    numbers = np.repeat(np.array(given, np.int64), rows)
    for number in _SEQUENCES:
        if number in wanted:
            columns[number] = _sequence(columns.get(number), status, numbers, manifests[0].manifest_path)


def inherit_row_ids(
    columns: dict[int, pa.Array], wanted: frozenset[int], manifest: ManifestFile, num_rows: int
) -> None:
    """Fill in, in place, the first row ids, if they are wanted, from the entries of one manifest."""
    if f.FIRST_ROW_ID in wanted and manifest.first_row_id is not None and manifest.content is ManifestContent.DATA:
        status = numbers_of(columns[f.STATUS])
        columns[f.FIRST_ROW_ID] = _row_ids(columns, status, manifest.first_row_id, num_rows, manifest.manifest_path)


def _filled(stored: pa.Array | None, values: np.ndarray[Any, Any]) -> pa.Array:
    filled = array_of(values)
    return filled if stored is None else pc.coalesce(stored, filled)


def _sequence(
    stored: pa.Array | None, status: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any], location: str
) -> pa.Array:
    """The sequence numbers of entries, given those of their manifests. Number 0 is inherited by every entry."""
    if stored is not None and stored.null_count == 0:
        return stored
    missing = numbers != 0
    if stored is not None:
        missing &= numbers_of(stored.is_null())
    if (missing & (status == EntryStatus.EXISTING)).any():
        raise InvalidMetadata(
            f"manifest {location} has an EXISTING entry without a sequence number, "
            "which only ADDED entries may inherit",
            location=location,
        )
    left = missing & ((status != EntryStatus.ADDED) | (numbers == UNASSIGNED))
    filled = _filled(stored, numbers)
    return pc.if_else(array_of(left), pa.scalar(None, pa.int64()), filled) if left.any() else filled


def _row_ids(
    columns: dict[int, pa.Array], status: np.ndarray[Any, Any], first: int, num_rows: int, location: str
) -> pa.Array:
    stored = columns.get(f.FIRST_ROW_ID)
    missing = np.ones(num_rows, bool) if stored is None else numbers_of(stored.is_null())
    inheriting = missing & (status != EntryStatus.DELETED)
    counts = np.where(inheriting, numbers_of(columns[f.RECORD_COUNT]), 0)
    # A file of unknown row count, and all files after it, get no row ids: the ids might belong to other rows.
    inheriting &= np.cumsum(counts < 0) == 0
    counts = np.maximum(counts, 0)
    if first + float(counts.sum(dtype=np.float64)) >= _TOO_MANY:
        raise InvalidMetadata(
            f"manifest {location} counts more rows than there are row ids after {first}", location=location
        )
    ids = array_of(first + np.cumsum(counts) - counts)
    if inheriting.all():
        return ids
    return pc.if_else(array_of(inheriting), ids, pa.nulls(num_rows, pa.int64()) if stored is None else stored)

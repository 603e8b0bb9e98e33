"""Manifest entries merged and split into pieces of a suitable size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from icefield.manifest import ManifestEntries
from icefield.manifest import schemas as f
from icefield.manifest.entries import StatisticKey
from icefield.types.arrow.pieces import are_neighbours, joined

PIECE_BYTES: Final = 16 * 1024 * 1024
"""The approximate size of the entries for one batch, in bytes."""

_ENOUGH_BYTES: Final = PIECE_BYTES // 4
"""Entries of this size are not joined with others if that needs a copy."""

_LEAST_ROWS: Final = 256

_WIDE_ROWS: Final = 64
"""Fewer entries are joined even if they are larger: a batch takes as long for one file of a wide table as for many."""


def pieces(parts: Iterable[ManifestEntries]) -> Iterator[ManifestEntries]:
    """The entries of manifests, in order: small manifests of one spec together, a large one in several pieces."""
    waiting: list[ManifestEntries] = []
    size = rows = 0
    for part in parts:
        own = part.nbytes
        full = rows >= _WIDE_ROWS and size + own > PIECE_BYTES
        if rows >= _WIDE_ROWS and size > _ENOUGH_BYTES:  # parts that were decoded together are joined without a copy
            full = full or not are_neighbours(waiting[-1].column(f.STATUS), part.column(f.STATUS))
        if waiting and (full or not _alike(part, waiting[0])):
            yield _joined(waiting)
            waiting, size, rows = [], 0, 0
        if own > PIECE_BYTES and len(part) > _LEAST_ROWS:
            step = max(_LEAST_ROWS, len(part) * PIECE_BYTES // own)
            for start in range(0, len(part), step):
                yield part.slice(start, step)
            continue
        if len(part):
            waiting.append(part)
            size += own
            rows += len(part)
    if waiting:
        yield _joined(waiting)


def _alike(one: ManifestEntries, other: ManifestEntries) -> bool:
    return one.spec_id == other.spec_id and one.partition.type == other.partition.type


def _joined(parts: Sequence[ManifestEntries]) -> ManifestEntries:
    """The entries of several manifests of one spec, as if the first held them all."""
    first = parts[0]
    if len(parts) == 1:
        return first.slice(0)  # later statistics are kept with the piece, not with the cached manifest
    made = ManifestEntries.concat(parts)
    for key in first.statistics:
        if all(key in part.statistics for part in parts):
            made.statistics[key] = _joined_statistic(parts, key)
    return made


def _joined_statistic(parts: Sequence[ManifestEntries], key: StatisticKey) -> pa.Array | None:
    found = [part.statistics[key] for part in parts]
    kind = next((array.type for array in found if array is not None), None)
    if kind is None:
        return None
    filled = [pa.nulls(len(part), kind) if array is None else array for part, array in zip(parts, found, strict=True)]
    return joined(filled)

"""The order of the entries of manifests, and the memory that sorting may take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from icefield.manifest import ManifestEntries, ManifestFile
from icefield.partitioning import PartitionSpec

Ints = npt.NDArray[np.int64]

HELD_BYTES: Final = 384 << 20
"""The most bytes of decoded entries in memory."""

EXPANSION: Final = 16
"""The estimated memory for a byte of a manifest: its decoded entries, and the buffers to sort them."""

_FULL_ENOUGH: Final = 0.6
"""Manifests of at least this share of the target size are not rewritten for their size."""


class EntryReader(Protocol):
    """Reads manifests of one table: a ``Head``, or its counterpart on executors."""

    def read(
        self, manifests: Sequence[ManifestFile], columns: Iterable[int], *, rewriting: bool
    ) -> Iterator[ManifestEntries]:
        """The entries of several manifests, in their order."""


def fits(count: int, wanted: int) -> bool:
    """Whether a number of manifests is near enough to the number wanted."""
    most = 1 if wanted == 1 else wanted / _FULL_ENOUGH
    return _FULL_ENOUGH * wanted <= count <= most


def key_names(spec: PartitionSpec, cluster_by: Sequence[str]) -> list[str]:
    """The partition fields of a spec in the order in which they sort entries."""
    names = [one.name for one in spec.fields]
    first = [name for name in cluster_by if name in names]
    return [*first, *(name for name in names if name not in first)]


def sorted_places(entries: ManifestEntries, spec: PartitionSpec, cluster_by: Sequence[str]) -> Ints:
    """The rows sorted by their partitions, nulls first."""
    partition = entries.partition
    names = [one.name for one in spec.fields]
    columns: dict[str, pa.Array] = {}
    for name in key_names(spec, cluster_by):
        values = partition.field(names.index(name))
        if values.null_count:
            columns[str(len(columns))] = values.is_valid()
        if not pa.types.is_null(values.type):
            columns[str(len(columns))] = _sortable(values)
    if not columns or not len(entries):
        return np.arange(len(entries))
    columns["place"] = pa.array(np.arange(len(entries)))
    keys = [(name, "ascending") for name in columns]
    order: Ints = np.asarray(pc.sort_indices(pa.table(columns), keys))
    return order.astype(np.int64)


def _sortable(values: pa.Array) -> pa.Array:
    """Arrow sorts no binary values of fixed size."""
    return values.cast(pa.binary()) if pa.types.is_fixed_size_binary(values.type) else values

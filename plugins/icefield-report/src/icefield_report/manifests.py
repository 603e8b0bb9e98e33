"""How well the manifests of a table are clustered: the range of partitions that each spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import Table

from icefield_report.partitions import Ints, Partitions

_MOST: Final = 20_000_000
"""Manifests times partitions that are compared; of more manifests only some are looked at."""


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests of the current snapshot: how many there are, and of those of data files the ranges.

    ``low`` and ``high`` are places in ``values``, the distinct values of the first partition field in order; ``spans``
    counts the partitions within the ranges of all fields.
    """

    data: int
    delete: int
    bytes: int
    field: str = ""
    values: tuple[str, ...] = ()
    low: Ints | None = None
    high: Ints | None = None
    spans: Ints | None = None

    @property
    def depth(self) -> Ints:
        """How many manifests may hold files of each value of the first field."""
        if self.low is None or self.high is None:
            return np.zeros(0, np.int64)
        changes = np.zeros(len(self.values) + 1, np.int64)
        np.add.at(changes, self.low, 1)
        np.add.at(changes, self.high + 1, -1)
        depth: Ints = np.cumsum(changes)[:-1]
        return depth


def manifests_of(table: Table, partitions: Partitions) -> Manifests:
    """The manifests of the current snapshot."""
    wanted = ("content", "length", "partition_spec_id", "partition_summaries")
    found = table.inspect.scan("manifests", selected_fields=wanted).to_arrow().combine_chunks()
    content = np.asarray(found["content"])
    total = int(pc.sum(found["length"]).as_py() or 0)
    data, delete = int(np.count_nonzero(content == 0)), int(np.count_nonzero(content != 0))
    spec = table.spec()
    of_spec = (content == 0) & (np.asarray(found["partition_spec_id"]) == spec.spec_id)
    if spec.is_unpartitioned or not of_spec.any() or not len(partitions):
        return Manifests(data, delete, total)
    rows = np.flatnonzero(of_spec)
    step = -(-len(rows) * len(partitions) // _MOST)
    summaries = found["partition_summaries"].take(pa.array(rows[::step]))
    (summaries,) = summaries.chunks if isinstance(summaries, pa.ChunkedArray) else [summaries]
    own = np.flatnonzero(partitions.specs == spec.spec_id)
    if not len(own) or (np.diff(summaries.offsets.to_numpy()) != len(spec.fields)).any():
        return Manifests(data, delete, total)
    inside = np.ones((len(summaries), len(own)), bool)
    first: tuple[tuple[str, ...], Ints, Ints] | None = None
    flat = summaries.flatten()
    for place, field in enumerate(spec.fields):
        values = partitions.values[partitions.ids.index(field.field_id)].take(pa.array(own))
        bounds = flat.take(pa.array(np.arange(place, len(flat), len(spec.fields))))
        ordered, ranks = _ranked(values)
        shown = tuple(partitions.display(field.field_id, ordered))
        low, high = _range(shown, bounds)
        inside &= (ranks >= low[:, None]) & (ranks <= high[:, None])
        if first is None:
            first = shown, low, high
    assert first is not None
    return Manifests(data, delete, total, spec.fields[0].name, *first, spans=inside.sum(axis=1))


def _ranked(values: pa.Array) -> tuple[pa.Array, Ints]:
    """The distinct values in order, nulls first, and the place of each value among them."""
    distinct = values.unique()
    known = distinct.drop_null()
    if not pa.types.is_null(values.type):
        # Arrow sorts no binary values of fixed size.
        key = known.cast(pa.binary()) if pa.types.is_fixed_size_binary(known.type) else known
        known = known.take(pc.sort_indices(key))
    distinct = pa.concat_arrays([pa.nulls(distinct.null_count, distinct.type), known])
    codes = pc.index_in(values, value_set=distinct, skip_nulls=False)
    return distinct, np.asarray(codes).astype(np.int64)


def _range(shown: tuple[str, ...], bounds: pa.Array) -> tuple[Ints, Ints]:
    """The first and the last place within bounds. A bound that names no value of a live partition bounds nothing."""
    places = pa.array(shown, pa.string())
    lower, upper = bounds.field("lower_bound"), bounds.field("upper_bound")
    low = np.asarray(pc.fill_null(pc.index_in(lower, value_set=places, skip_nulls=True), 0)).astype(np.int64)
    high = np.asarray(pc.fill_null(pc.index_in(upper, value_set=places, skip_nulls=True), len(shown) - 1))
    has_null = np.asarray(bounds.field("contains_null")).astype(bool)
    only_null = has_null & np.asarray(lower.is_null())
    low = np.where(has_null & (shown[0] == "null"), 0, low)
    high = np.where(only_null, low, high).astype(np.int64)
    return np.minimum(low, high), np.maximum(low, high)

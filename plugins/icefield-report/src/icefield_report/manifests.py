"""The clustering of a table's manifests: the range of partitions that each manifest spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from icefield import Table
from icefield.partitioning import PartitionSpec

from icefield_report.partitions import Ints, Partitions

_MOST: Final = 20_000_000
"""The most pairs of a manifest and a partition to compare; beyond that, a sample of the manifests is compared."""


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests of the current snapshot: their numbers, and the ranges of partition values of data manifests.

    ``low`` and ``high`` are places in ``values``, the distinct values of the first field of the current spec in order,
    for the manifests of all specs; ``spans`` counts the partitions within the ranges of all fields.
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


def manifests_of(table: Table, partitions: Partitions, snapshot_id: int | None = None) -> Manifests:
    """The manifests of a snapshot, by default the current one."""
    wanted = ("content", "length", "partition_spec_id", "partition_summaries")
    found = table.inspect.scan("manifests", snapshot_id=snapshot_id, selected_fields=wanted).to_arrow().combine_chunks()
    content = np.asarray(found["content"])
    total = int(pc.sum(found["length"]).as_py() or 0)
    data, delete = int(np.count_nonzero(content == 0)), int(np.count_nonzero(content != 0))
    spec = table.spec()
    if spec.is_unpartitioned or not data or not len(partitions):
        return Manifests(data, delete, total)
    number = spec.fields[0].field_id
    if number not in partitions.ids:
        return Manifests(data, delete, total)
    # Older specs may have the field as well: their manifests hold files of the same values.
    ordered, _ = _ranked(partitions.values[partitions.ids.index(number)].filter(pa.array(_having(partitions, number))))
    shown = tuple(partitions.display(number, ordered))
    specs, content_specs = table.metadata.partition_specs, np.asarray(found["partition_spec_id"])
    parts: list[tuple[Ints, Ints, Ints]] = []
    for each in specs:
        rows = np.flatnonzero((content == 0) & (content_specs == each.spec_id))
        step = max(1, -(-data * len(partitions) // _MOST))
        spans = _of_spec(found["partition_summaries"].take(pa.array(rows[::step])), each, partitions, number, shown)
        if spans is not None:
            parts.append(spans)
    if not parts or not shown:
        return Manifests(data, delete, total)
    low, high, spanned = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Manifests(data, delete, total, spec.fields[0].name, shown, low, high, spanned)


def _having(partitions: Partitions, number: int) -> npt.NDArray[np.bool_]:
    """The partitions of specs that have a field."""
    having = [spec_id for spec_id, fields in partitions.of_spec.items() if number in fields]
    return np.isin(partitions.specs, having)


def _of_spec(
    summaries: pa.ListArray, spec: PartitionSpec, partitions: Partitions, number: int, shown: tuple[str, ...]
) -> tuple[Ints, Ints, Ints] | None:
    """The first and the last place of the field in each manifest of a spec, and the number of partitions it spans.

    A manifest of a spec without the field may hold files of every value. None for a spec without manifests or
    partitions, or with summaries that do not match its fields.
    """
    if isinstance(summaries, pa.ChunkedArray):
        summaries = summaries.combine_chunks()
    own = np.flatnonzero(partitions.specs == spec.spec_id)
    if not len(summaries) or not len(own) or (np.diff(summaries.offsets.to_numpy()) != len(spec.fields)).any():
        return None
    low = np.zeros(len(summaries), np.int64)
    high = np.full(len(summaries), max(0, len(shown) - 1), np.int64)
    inside = np.ones((len(summaries), len(own)), bool)
    flat = summaries.flatten()
    for place, field in enumerate(spec.fields):
        if field.field_id not in partitions.ids:
            continue
        values = partitions.values[partitions.ids.index(field.field_id)].take(pa.array(own))
        bounds = flat.take(pa.array(np.arange(place, len(flat), len(spec.fields))))
        ordered, ranks = _ranked(values)
        first, last = _range(tuple(partitions.display(field.field_id, ordered)), bounds)
        inside &= (ranks >= first[:, None]) & (ranks <= last[:, None])
        if field.field_id == number:
            low, high = _range(shown, bounds)
    return low, high, inside.sum(axis=1)


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
    """The first and the last place within bounds. A bound that is not the value of a live partition is ignored."""
    places = pa.array(shown, pa.string())
    lower, upper = bounds.field("lower_bound"), bounds.field("upper_bound")
    low = np.asarray(pc.fill_null(pc.index_in(lower, value_set=places, skip_nulls=True), 0)).astype(np.int64)
    high = np.asarray(pc.fill_null(pc.index_in(upper, value_set=places, skip_nulls=True), len(shown) - 1))
    has_null = np.asarray(bounds.field("contains_null")).astype(bool)
    only_null = has_null & np.asarray(lower.is_null())
    low = np.where(has_null & (shown[0] == "null"), 0, low)
    high = np.where(only_null, low, high).astype(np.int64)
    return np.minimum(low, high), np.maximum(low, high)

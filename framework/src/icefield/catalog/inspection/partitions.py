"""The table of partitions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.catalog.inspection.source import Source
from icefield.expressions import (
    BooleanExpression,
    as_expression,
    bind,
    evaluate,
    inclusive_metrics,
    inclusive_projection,
)
from icefield.manifest import DataFileContent, EntryStatus, ManifestContent, ManifestEntries
from icefield.manifest import schemas as f
from icefield.manifest.entries import take
from icefield.metadata.snapshots import Snapshot
from icefield.partitioning.tuples import tuple_groups
from icefield.scan.pruning import EntryGroup, filter_types

_COUNTS: Final = {
    "record_count": (DataFileContent.DATA, f.RECORD_COUNT),
    "file_count": (DataFileContent.DATA, None),
    "total_data_file_size_in_bytes": (DataFileContent.DATA, f.FILE_SIZE),
    "position_delete_record_count": (DataFileContent.POSITION_DELETES, f.RECORD_COUNT),
    "position_delete_file_count": (DataFileContent.POSITION_DELETES, None),
    "equality_delete_record_count": (DataFileContent.EQUALITY_DELETES, f.RECORD_COUNT),
    "equality_delete_file_count": (DataFileContent.EQUALITY_DELETES, None),
}


def partitions_table(
    source: Source, snapshot: Snapshot | None, row_filter: str | BooleanExpression, case_sensitive: bool
) -> pa.Table:
    """One row a partition that has live files; ``last_updated_*`` state the newest snapshot that added one.

    A table that never had a partition field has one row, without the columns ``partition`` and ``spec_id``.
    """
    parts = [_live(entries) for entries in source.entries(source.manifests(snapshot))]
    bound = bind(source.metadata.schema(), as_expression(row_filter), case_sensitive)
    parts = [part for part in (_matching(source, part, bound) for part in parts) if len(part)]
    kind = source.united_partition_type
    partition = pa.concat_arrays([source.united_partitions(part) for part in parts] or [pa.nulls(0, kind)])
    specs = np.concatenate([np.full(len(part), part.spec_id, np.int32) for part in parts] or [np.zeros(0, np.int32)])
    keyed = pa.StructArray.from_arrays(
        [pa.array(specs), *(partition.field(place) for place in range(kind.num_fields))],
        names=[str(place) for place in range(kind.num_fields + 1)],
    )
    groups, rows = tuple_groups(keyed)
    columns = {
        "partition": take(partition, pa.array(rows)),
        "spec_id": pa.array(specs[rows]),
        **{name: _sums(parts, groups, len(rows), *what) for name, what in _COUNTS.items()},
        **_last_updates(source, parts, groups, len(rows)),
    }
    return pa.Table.from_arrays([columns[field.name] for field in _schema(kind)], schema=_schema(kind))


def _live(entries: ManifestEntries) -> ManifestEntries:
    return entries.filter(entries.status() != EntryStatus.DELETED)


def _matching(source: Source, entries: ManifestEntries, bound: BooleanExpression) -> ManifestEntries:
    """The files that may hold, or delete, matching rows."""
    spec = source.metadata.spec_by_id(entries.spec_id)
    mask = np.asarray(evaluate(inclusive_projection(spec, source.metadata.schema(), bound), entries.partition))
    if entries.manifest.content is ManifestContent.DATA:
        mask = mask & inclusive_metrics(bound, EntryGroup([entries], filter_types(bound)))
    return entries.filter(mask)


def _sums(
    parts: list[ManifestEntries], groups: np.ndarray[Any, Any], count: int, content: DataFileContent, number: int | None
) -> pa.Array:
    """For each group the number of files of a content, or the sum of a column over them."""
    sums = np.zeros(count, np.int64)
    start = 0
    for part in parts:
        own = groups[start : start + len(part)]
        start += len(part)
        mask = np.asarray(part.column(f.CONTENT)) == content
        weights = np.ones(len(part), np.int64) if number is None else np.asarray(part.column(number))
        np.add.at(sums, own[mask], weights[mask])
    return pa.array(sums if number is not None else sums.astype(np.int32))


def _last_updates(
    source: Source, parts: list[ManifestEntries], groups: np.ndarray[Any, Any], count: int
) -> dict[str, pa.Array]:
    ids = np.concatenate([np.asarray(part.column(f.SNAPSHOT_ID)) for part in parts] or [np.zeros(0, np.int64)])
    distinct, places = np.unique(ids, return_inverse=True)
    times = np.full(len(distinct), -1, np.int64)
    for place, snapshot_id in enumerate(distinct.tolist()):
        snapshot = source.metadata.snapshot_by_id(snapshot_id)
        if snapshot is not None:
            times[place] = snapshot.timestamp_ms
    order = np.lexsort((times[places], groups))
    # Of each group the last in this order is the newest.
    newest = order[np.searchsorted(groups[order], np.arange(count), side="right") - 1] if count else order
    known = times[places][newest]
    expired = pa.array(known < 0)
    return {
        "last_updated_at": pc.if_else(expired, None, pa.array(known)).cast(pa.timestamp("ms")),
        "last_updated_snapshot_id": pc.if_else(expired, None, pa.array(ids[newest])),
    }


def _schema(partition: pa.StructType) -> pa.Schema:
    counts = [
        pa.field(name, pa.int32() if number is None else pa.int64(), nullable=False)
        for name, (_, number) in _COUNTS.items()
    ]
    partitioned = [pa.field("partition", partition, nullable=False), pa.field("spec_id", pa.int32(), nullable=False)]
    return pa.schema(
        [
            *(partitioned if partition.num_fields else ()),
            *counts,
            pa.field("last_updated_at", pa.timestamp("ms")),
            pa.field("last_updated_snapshot_id", pa.int64()),
        ]
    )

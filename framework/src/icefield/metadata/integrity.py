"""Checks of table metadata that must pass before any use of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final

from icefield.errors import InvalidMetadata
from icefield.metadata.refs import MAIN_BRANCH
from icefield.metadata.table_metadata import TableMetadata
from icefield.partitioning.spec import PARTITION_FIELD_ID_START

CLOCK_SKEW_MS: Final = 60_000
"""The largest step back in time between two entries of a log: the clocks of writers differ."""


def check_metadata(metadata: TableMetadata, location: str) -> TableMetadata:
    """Check decoded metadata; return it with its last ids raised to the highest ids in use.

    So no id is assigned twice. Raises ``InvalidMetadata`` for ids that name nothing, refs that contradict the current
    snapshot, sequence numbers beyond the last one, and logs that run backwards.
    """
    try:
        _check_ids(metadata)
        _check_refs(metadata)
        _check_times("snapshot-log", metadata.snapshot_log.records, metadata.last_updated_ms)
        _check_times("metadata-log", metadata.metadata_log.records, metadata.last_updated_ms)
    except _Inconsistency as broken:
        raise InvalidMetadata(f"{location}: {broken}", location=location, key=broken.key) from None
    metadata.spec()
    metadata.sort_order()
    last_column_id = metadata.last_column_id
    if last_column_id < metadata.schema().highest_field_id:
        last_column_id = max(schema.highest_field_id for schema in metadata.schemas)
    partition_field_ids = (field.field_id for spec in metadata.partition_specs.records for field in spec.fields)
    return replace(
        metadata,
        last_column_id=last_column_id,
        last_partition_id=max([metadata.last_partition_id, PARTITION_FIELD_ID_START - 1, *partition_field_ids]),
    )


class _Inconsistency(Exception):
    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"'{key}' {why}")
        self.key = key


def _check_ids(m: TableMetadata) -> None:
    if not m.location.strip():
        raise _Inconsistency("location", "is empty")
    for key, chosen, array in (
        ("current-schema-id", m.current_schema_id, m.schemas),
        ("default-spec-id", m.default_spec_id, m.partition_specs),
        ("default-sort-order-id", m.default_sort_order_id, m.sort_orders),
        ("current-snapshot-id", m.current_snapshot_id, m.snapshots),
    ):
        if chosen is not None and chosen not in array.positions:
            raise _Inconsistency(key, f"is {chosen}, and no such element exists")
    for key, number in (
        ("last-column-id", m.last_column_id),
        ("last-partition-id", m.last_partition_id),
        ("last-sequence-number", m.last_sequence_number),
        ("next-row-id", m.next_row_id),
    ):
        if number is not None and number < 0:
            raise _Inconsistency(key, f"is negative: {number}")
    highest = max(filter(None, map(attrgetter("sequence_number"), m.snapshots.records)), default=0)
    if m.format_version > 1 and highest > m.last_sequence_number:
        raise _Inconsistency("snapshots", f"reach sequence number {highest}, above last-sequence-number")


def _check_refs(m: TableMetadata) -> None:
    snapshots = m.snapshots.positions
    for name, ref in m.refs.items():
        if ref.snapshot_id not in snapshots:
            raise _Inconsistency("refs", f"has '{name}' at snapshot {ref.snapshot_id}, which does not exist")
    main = m.refs.get(MAIN_BRANCH)
    if main is None:
        return
    if main.is_tag:
        raise _Inconsistency("refs", "has 'main' as a tag; it must be a branch")
    if main.snapshot_id != m.current_snapshot_id:
        raise _Inconsistency(
            "refs", f"has 'main' at {main.snapshot_id}, but the current snapshot is {m.current_snapshot_id}"
        )


def _check_times(key: str, entries: Iterable[Any], end_ms: int) -> None:
    """Raise unless times run forward, to ``end_ms``, with a tolerance for the clocks of different writers."""
    times = [entry.timestamp_ms for entry in entries]
    if times != sorted(times):
        for before, after in pairwise(times):
            if after < before - CLOCK_SKEW_MS:
                raise _Inconsistency(key, f"runs backwards: {after} ms follows {before} ms")
    if times and end_ms < times[-1] - CLOCK_SKEW_MS:
        raise _Inconsistency(key, f"ends at {times[-1]} ms, after last-updated-ms, which is {end_ms}")

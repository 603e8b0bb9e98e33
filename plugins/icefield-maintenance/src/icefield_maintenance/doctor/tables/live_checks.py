"""Checks of all live entries of a snapshot together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import manifest as f
from icefield.errors import IcefieldError
from icefield.manifest import COLUMN_TYPES, EntryStatus, ManifestContent, ManifestEntries
from icefield.metadata import Snapshot

from icefield_maintenance.doctor.tables import delete_scope_checks, rules
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.rules import Rule
from icefield_maintenance.doctor.tables.subject import Subject

RULES: Final = (
    rules.LISTED_TWICE,
    rules.VECTORS_TWICE,
    *delete_scope_checks.RULES,
    rules.ROW_IDS_MISSING,
    rules.ROW_IDS_TWICE,
)
_TOGETHER: Final = (f.FILE_PATH, f.FILE_FORMAT, f.RECORD_COUNT, f.FIRST_ROW_ID, f.REFERENCED_DATA_FILE)
_KEPT: Final = frozenset({*_TOGETHER, *delete_scope_checks.COLUMNS})
_BOUNDS: Final = frozenset({f.LOWER_BOUNDS, f.UPPER_BOUNDS})
_V3: Final = 3


def look_at_head(subject: Subject, head: Snapshot, ledger: Ledger) -> None:
    """Check all live entries of the head of a branch or tag."""
    data_parts: list[ManifestEntries] = []
    delete_parts: list[ManifestEntries] = []
    for manifest in subject.manifests(head):
        is_data = manifest.content is ManifestContent.DATA
        try:
            entries = subject.entries(manifest)
        except IcefieldError:
            return  # the checks below need every entry; another check reports the manifest
        kept = entries.select(_KEPT if is_data else _KEPT | _BOUNDS)
        (data_parts if is_data else delete_parts).append(kept.filter(entries.status() != EntryStatus.DELETED))
    data, deletes = _table(data_parts), _table(delete_parts)
    ledger.look_at(rules.LISTED_TWICE)
    _twice(data, f.FILE_PATH, rules.LISTED_TWICE, "live in more than one entry", ledger)
    ledger.look_at(rules.VECTORS_TWICE)
    vectors = deletes.filter(pc.equal(_column(deletes, f.FILE_FORMAT), "puffin"))
    _twice(vectors, f.REFERENCED_DATA_FILE, rules.VECTORS_TWICE, "more than one deletion vector", ledger)
    unpartitioned = [spec.spec_id for spec in subject.metadata.partition_specs if spec.is_unpartitioned]
    delete_scope_checks.look_at_scopes(delete_parts, data_parts, unpartitioned, ledger)
    if subject.metadata.format_version >= _V3 and head.first_row_id is not None:
        _row_ids(data, ledger)
    ledger.look_at(None)


def _table(parts: Sequence[ManifestEntries]) -> pa.Table:
    names = [str(number) for number in _TOGETHER]
    schema = pa.schema([pa.field(name, COLUMN_TYPES[number]) for name, number in zip(names, _TOGETHER, strict=True)])
    batches = [
        pa.RecordBatch.from_arrays([part.column(number) for number in _TOGETHER], schema=schema) for part in parts
    ]
    return pa.Table.from_batches(batches, schema)


def _column(table: pa.Table, number: int) -> pa.ChunkedArray:
    return table.column(str(number))


def _twice(table: pa.Table, number: int, rule: Rule, found: str, ledger: Ledger) -> None:
    counts = table.group_by(str(number)).aggregate([([], "count_all")])
    for row in counts.filter(pc.greater(counts.column("count_all"), 1)).to_pylist():
        if row[str(number)] is not None:
            ledger.breach(rule, row[str(number)], f"{found}: {row['count_all']}")


def _row_ids(data: pa.Table, ledger: Ledger) -> None:
    ledger.look_at(rules.ROW_IDS_MISSING)
    first = _column(data, f.FIRST_ROW_ID)
    for path in _column(data.filter(pc.is_null(first)), f.FILE_PATH).to_pylist():
        ledger.breach(rules.ROW_IDS_MISSING, path, "the file has no first row id")
    ledger.look_at(rules.ROW_IDS_TWICE)
    known = data.filter(pc.is_valid(first)).sort_by(str(f.FIRST_ROW_ID))
    starts, rows = (np.asarray(_column(known, number)) for number in (f.FIRST_ROW_ID, f.RECORD_COUNT))
    for row in np.flatnonzero(starts[1:] < (starts + rows)[:-1]) + 1:
        path = _column(known, f.FILE_PATH)[int(row)].as_py()
        ledger.breach(rules.ROW_IDS_TWICE, path, f"its row ids begin at {starts[row]}, within those of another file")

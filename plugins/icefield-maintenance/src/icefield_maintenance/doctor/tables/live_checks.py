"""Checks of all live entries of a snapshot together. Data files are streamed: 8 to 25 bytes of each are held."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from icefield import manifest as f
from icefield.errors import IcefieldError
from icefield.manifest import COLUMN_TYPES, EntryStatus, ManifestContent, ManifestEntries
from icefield.metadata import Snapshot
from icefield.storage import Hashes, LocationSet, path_hashes

from icefield_maintenance.doctor.tables import delete_scope_checks, rules
from icefield_maintenance.doctor.tables.delete_scope_checks import DeleteScopes
from icefield_maintenance.doctor.tables.groups import RuleGroup
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.rules import Rule
from icefield_maintenance.doctor.tables.subject import FILE_COLUMNS, Subject

_OF_DELETES: Final = frozenset({f.STATUS, f.LOWER_BOUNDS, f.UPPER_BOUNDS}) | delete_scope_checks.COLUMNS
_V3: Final = 3
_SORTED_AT_ONCE: Final = 1 << 13
"""The number of files with sorted row ids that are compared at once."""

_DataFiles = Callable[[frozenset[int]], Iterator[ManifestEntries]]
"""A function that reads some columns of the live data files, manifest by manifest."""


def examine_heads(subject: Subject, ledger: Ledger) -> None:
    """Check all live entries of the head of each branch and tag together."""
    for head in subject.heads():
        _look_at_head(subject, head, ledger)


def _look_at_head(subject: Subject, head: Snapshot, ledger: Ledger) -> None:
    manifests = subject.manifests(head)

    def live(content: ManifestContent, columns: frozenset[int]) -> Iterator[ManifestEntries]:
        for manifest in manifests:
            if manifest.content is content:
                entries = subject.entries(manifest, columns)
                yield entries.filter(entries.status() != EntryStatus.DELETED)

    def data(columns: frozenset[int]) -> Iterator[ManifestEntries]:
        return live(ManifestContent.DATA, columns)

    try:
        deletes = [part for part in live(ManifestContent.DELETES, _OF_DELETES) if len(part)]
        unpartitioned = [spec.spec_id for spec in subject.metadata.partition_specs if spec.is_unpartitioned]
        scopes = DeleteScopes(deletes, unpartitioned) if deletes else None
        has_row_ids = subject.metadata.format_version >= _V3 and head.first_row_id is not None
        columns = FILE_COLUMNS | delete_scope_checks.COLUMNS if scopes else FILE_COLUMNS
        files = _DataFileNumbers.of(data(columns), scopes, has_row_ids)
    except IcefieldError:
        return  # the checks below need every entry; another check reports the manifest
    ledger.look_at(rules.LISTED_TWICE)
    _listed_twice(files.hashes, data, ledger)
    ledger.look_at(rules.VECTORS_TWICE)
    _vectors_twice(deletes, ledger)
    if scopes is not None:
        scopes.look(lambda: data(FILE_COLUMNS | delete_scope_checks.COLUMNS), ledger)
    if has_row_ids:
        _row_ids(files, data, ledger)
    ledger.look_at(None)


@dataclass(frozen=True, slots=True)
class _DataFileNumbers:
    """Numbers of all live data files, in the order of the manifests: hashes of locations, row ids and rows.

    Without row ids, only the hashes are held.
    """

    hashes: Hashes
    first_row_ids: npt.NDArray[np.int64]
    lacks_row_ids: npt.NDArray[np.bool_]
    rows: npt.NDArray[np.int64]

    @classmethod
    def of(cls, parts: Iterator[ManifestEntries], scopes: DeleteScopes | None, has_row_ids: bool) -> _DataFileNumbers:
        """The numbers of data files, manifest by manifest. ``scopes`` takes the files, too."""
        hashes, first_row_ids, lacks_row_ids, rows = bytearray(), bytearray(), bytearray(), bytearray()
        for part in parts:
            if scopes is not None:
                scopes.add(part)
            hashes += path_hashes(part.column(f.FILE_PATH)).data
            if has_row_ids:
                ids = part.column(f.FIRST_ROW_ID)
                first_row_ids += np.asarray(pc.fill_null(ids, 0)).data
                lacks_row_ids += np.asarray(ids.is_null()).data
                rows += np.asarray(part.column(f.RECORD_COUNT)).data
        return cls(
            np.frombuffer(hashes, np.uint64),
            np.frombuffer(first_row_ids, np.int64),
            np.frombuffer(lacks_row_ids, np.bool_),
            np.frombuffer(rows, np.int64),
        )


def _listed_twice(hashes: Hashes, data: _DataFiles, ledger: Ledger) -> None:
    """Check that each file is live once. Sorts the hashes in place."""
    hashes.sort()
    twice = LocationSet()
    twice.add_new(hashes[1:][hashes[1:] == hashes[:-1]])
    if len(twice):
        columns = (part.column(f.FILE_PATH) for part in data(FILE_COLUMNS))
        found = [paths.filter(pa.array(twice.has(path_hashes(paths)))) for paths in columns]
        _twice(pa.concat_arrays(found), rules.LISTED_TWICE, "live in more than one entry", ledger)


def _vectors_twice(deletes: Sequence[ManifestEntries], ledger: Ledger) -> None:
    named: list[pa.Array] = [pa.array([], COLUMN_TYPES[f.REFERENCED_DATA_FILE])]
    for part in deletes:
        named.append(part.column(f.REFERENCED_DATA_FILE).filter(pc.equal(part.column(f.FILE_FORMAT), "puffin")))
    _twice(pa.concat_arrays(named), rules.VECTORS_TWICE, "more than one deletion vector", ledger)


def _twice(values: pa.Array, rule: Rule, found: str, ledger: Ledger) -> None:
    counts = values.value_counts()
    for row in counts.filter(pc.greater(counts.field("counts"), 1)).to_pylist():
        if row["values"] is not None:
            ledger.breach(rule, row["values"], f"{found}: {row['counts']}")


def _row_ids(files: _DataFileNumbers, data: _DataFiles, ledger: Ledger) -> None:
    ledger.look_at(rules.ROW_IDS_MISSING)
    for path in _paths(data, np.flatnonzero(files.lacks_row_ids)):
        ledger.breach(rules.ROW_IDS_MISSING, path, "the file has no first row id")
    ledger.look_at(rules.ROW_IDS_TWICE)
    known = np.argsort(files.first_row_ids, kind="stable")
    if files.lacks_row_ids.any():
        known = known[~files.lacks_row_ids[known]]
    twice = [np.zeros(0, np.int64)]
    for first in range(0, len(known), _SORTED_AT_ONCE):
        some = known[first : first + _SORTED_AT_ONCE + 1]
        starts, rows = files.first_row_ids[some], files.rows[some]
        twice.append(some[np.flatnonzero(starts[1:] < (starts + rows)[:-1]) + 1])
    inside = np.concatenate(twice)
    for path, start in zip(_paths(data, inside), files.first_row_ids[inside].tolist(), strict=True):
        ledger.breach(rules.ROW_IDS_TWICE, path, f"its row ids begin at {start}, within those of another file")


def _paths(data: _DataFiles, files: npt.NDArray[np.int64]) -> list[str]:
    """The locations of some data files by their numbers, in the given order. Reads the manifests again."""
    if not len(files):
        return []
    order = np.argsort(files, kind="stable")
    wanted = files[order]
    found: list[str] = []
    start = 0
    for part in data(FILE_COLUMNS):
        first, last = np.searchsorted(wanted, (start, start + len(part)))
        found += part.column(f.FILE_PATH).take(pa.array(wanted[first:last] - start)).to_pylist()
        start += len(part)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return [found[place] for place in places.tolist()]


RULES: Final = RuleGroup(
    (
        rules.LISTED_TWICE,
        rules.VECTORS_TWICE,
        *delete_scope_checks.RULES,
        rules.ROW_IDS_MISSING,
        rules.ROW_IDS_TWICE,
    ),
    examine_heads,
)

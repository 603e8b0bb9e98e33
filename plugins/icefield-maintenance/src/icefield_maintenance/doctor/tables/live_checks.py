"""Checks of all live entries of a snapshot together. Data files are streamed: 24 bytes of each are held."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from icefield import manifest as f
from icefield.errors import IcefieldError
from icefield.manifest import COLUMN_TYPES, EntryStatus, ManifestContent, ManifestEntries
from icefield.metadata import Snapshot
from icefield.storage import Hashes, path_hashes

from icefield_maintenance.doctor.tables import delete_scope_checks, rules
from icefield_maintenance.doctor.tables.delete_scope_checks import DeleteScopes
from icefield_maintenance.doctor.tables.groups import RuleGroup
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.rules import Rule
from icefield_maintenance.doctor.tables.subject import FILE_COLUMNS, Subject

_OF_DELETES: Final = frozenset({f.STATUS, f.LOWER_BOUNDS, f.UPPER_BOUNDS}) | delete_scope_checks.COLUMNS
_V3: Final = 3

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
        files = _gathered(data(FILE_COLUMNS | delete_scope_checks.COLUMNS if scopes else FILE_COLUMNS), scopes)
    except IcefieldError:
        return  # the checks below need every entry; another check reports the manifest
    ledger.look_at(rules.LISTED_TWICE)
    _listed_twice(files, data, ledger)
    ledger.look_at(rules.VECTORS_TWICE)
    _vectors_twice(deletes, ledger)
    if scopes is not None:
        scopes.look(lambda: data(FILE_COLUMNS | delete_scope_checks.COLUMNS), ledger)
    if subject.metadata.format_version >= _V3 and head.first_row_id is not None:
        _row_ids(files, data, ledger)
    ledger.look_at(None)


@dataclass(frozen=True, slots=True)
class _DataFileNumbers:
    """Numbers of all live data files, in the order of the manifests: hashes of locations, row ids and rows."""

    hashes: Hashes
    first_row_ids: npt.NDArray[np.int64]
    has_row_ids: npt.NDArray[np.bool_]
    rows: npt.NDArray[np.int64]


def _gathered(parts: Iterator[ManifestEntries], scopes: DeleteScopes | None) -> _DataFileNumbers:
    empty = (np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, bool), np.zeros(0, np.int64))
    found: list[tuple[Any, ...]] = [empty]
    for part in parts:
        if scopes is not None:
            scopes.add(part)
        ids = part.column(f.FIRST_ROW_ID)
        numbers = (
            np.asarray(pc.fill_null(ids, 0)),
            np.asarray(ids.is_valid()),
            np.asarray(part.column(f.RECORD_COUNT)),
        )
        found.append((path_hashes(part.column(f.FILE_PATH)), *numbers))
    return _DataFileNumbers(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _listed_twice(files: _DataFileNumbers, data: _DataFiles, ledger: Ledger) -> None:
    sorted_hashes = np.sort(files.hashes)
    twice = np.unique(sorted_hashes[1:][sorted_hashes[1:] == sorted_hashes[:-1]])
    if len(twice):
        paths = _paths(data, np.flatnonzero(np.isin(files.hashes, twice)))
        _twice(pa.array(paths, pa.string()), rules.LISTED_TWICE, "live in more than one entry", ledger)


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
    for path in _paths(data, np.flatnonzero(~files.has_row_ids)):
        ledger.breach(rules.ROW_IDS_MISSING, path, "the file has no first row id")
    ledger.look_at(rules.ROW_IDS_TWICE)
    known = np.flatnonzero(files.has_row_ids)
    known = known[np.argsort(files.first_row_ids[known], kind="stable")]
    starts, rows = files.first_row_ids[known], files.rows[known]
    twice = known[np.flatnonzero(starts[1:] < (starts + rows)[:-1]) + 1]
    for path, start in zip(_paths(data, twice), files.first_row_ids[twice].tolist(), strict=True):
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

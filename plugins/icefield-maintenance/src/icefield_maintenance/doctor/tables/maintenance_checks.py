"""Checks of the need for maintenance: small files, deletes that every reader applies, many manifests or snapshots."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from icefield import manifest as f
from icefield.engine import tuple_groups
from icefield.errors import IcefieldError
from icefield.manifest import DataFileContent, EntryStatus, ManifestEntries
from icefield.metadata import GC_ENABLED, MANIFEST_TARGET_SIZE, WRITE_TARGET_FILE_SIZE, Snapshot, get_bool, get_int

from icefield_maintenance.doctor.tables import rules
from icefield_maintenance.doctor.tables.groups import RuleGroup
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.subject import FILE_COLUMNS, Subject
from icefield_maintenance.expiry.interrupted import left_behind
from icefield_maintenance.expiry.retention import Retention, expired
from icefield_maintenance.stored_version import with_what_is_stored

_SMALL: Final = 0.75
"""The share of the target size below which a file is small, as in compaction."""
_ENOUGH: Final = 5
"""The least number of small files of one partition that is worth joining."""
_DELETED: Final = 0.1
"""The share of deleted rows that is worth a warning, since it slows readers down."""


def examine_maintenance(subject: Subject, ledger: Ledger) -> None:
    """Check the need for maintenance. Files are checked in the current snapshot, not in other branches and tags."""
    current = subject.metadata.current_snapshot()
    if current is not None:
        _files(subject, current, ledger)
        _manifests(subject, current, ledger)
    _snapshots(subject, ledger)


@dataclass(frozen=True, slots=True)
class _Partitions:
    """Partition tuples, with a number of files and their bytes for each."""

    tuples: pa.StructArray
    files: npt.NDArray[np.int64]
    bytes_: npt.NDArray[np.int64]

    @classmethod
    def joined(cls, parts: Sequence[_Partitions]) -> _Partitions:
        """The partitions of all parts, each once, with the sums of their numbers."""
        files, bytes_ = (np.concatenate(each) for each in zip(*((one.files, one.bytes_) for one in parts), strict=True))
        tuples = parts[0].tuples
        groups, first = np.zeros(len(files), np.int64), np.zeros(1, np.int64)
        if len(tuples.type):
            tuples = pa.concat_arrays([one.tuples for one in parts])
            groups, first = tuple_groups(tuples)
            tuples = tuples.take(pa.array(first))
        sums = np.zeros((2, len(first)), np.int64)
        np.add.at(sums[0], groups, files)
        np.add.at(sums[1], groups, bytes_)
        return cls(tuples, *sums)


@dataclass(slots=True)
class _Live:
    """The live files: the partitions of small data files, by spec, and the numbers of rows and deletes."""

    limit: float
    """The size in bytes below which a file is small."""
    small: dict[int, list[_Partitions]] = field(default_factory=dict)
    rows: int = 0
    deleted: int = 0
    delete_files: int = 0

    def add(self, entries: ManifestEntries) -> None:
        """Add the live entries of a manifest."""
        live = entries.status() != EntryStatus.DELETED
        is_data = np.asarray(entries.column(f.CONTENT)) == DataFileContent.DATA
        counts = np.asarray(entries.column(f.RECORD_COUNT))
        data, deletes = live & is_data, live & ~is_data
        self.rows += int(counts[data].sum())
        self.deleted += int(counts[deletes].sum())
        self.delete_files += int(deletes.sum())
        sizes = np.asarray(entries.column(f.FILE_SIZE))
        rows = np.flatnonzero(data & (sizes < self.limit))
        if len(rows):
            chosen = entries.select(frozenset({f.PARTITION})).take(rows)
            files = _Partitions(chosen.partition, np.ones(len(rows), np.int64), sizes[rows])
            self.small.setdefault(entries.spec_id, []).append(_Partitions.joined([files]))


def _files(subject: Subject, current: Snapshot, ledger: Ledger) -> None:
    properties, where = subject.metadata.properties, subject.metadata.location
    live = _Live(_SMALL * get_int(properties, WRITE_TARGET_FILE_SIZE))
    try:
        for manifest in subject.manifests(current):
            live.add(subject.entries(manifest, FILE_COLUMNS))
    except IcefieldError as error:
        for rule in (rules.SMALL_FILES, rules.DELETE_DEBT):
            ledger.skip(rule, str(error))
        return
    ledger.look_at(rules.SMALL_FILES)
    small, joined, bytes_ = 0, 0, 0
    for parts in live.small.values():
        partitions = _Partitions.joined(parts)
        enough = partitions.files >= _ENOUGH
        small += int(partitions.files[enough].sum())
        joined += int(enough.sum())
        bytes_ += int(partitions.bytes_[enough].sum())
    if small:
        found = f"{small:,} data files of {joined:,} partitions, {bytes_:,} bytes, are below {_SMALL:.0%} of the target"
        ledger.breach(rules.SMALL_FILES, where, found)
    ledger.look_at(rules.DELETE_DEBT)
    if live.delete_files and live.deleted >= _DELETED * live.rows:
        found = f"{live.delete_files:,} delete files delete {live.deleted:,} of {live.rows:,} rows"
        ledger.breach(rules.DELETE_DEBT, where, found)


def _manifests(subject: Subject, current: Snapshot, ledger: Ledger) -> None:
    ledger.look_at(rules.SMALL_MANIFESTS)
    lengths = [manifest.manifest_length for manifest in subject.manifests(current)]
    target = get_int(subject.metadata.properties, MANIFEST_TARGET_SIZE)
    needed = -(-sum(lengths) // target)
    if len(lengths) >= 2 * _ENOUGH and len(lengths) > 2 * needed:
        found = f"{len(lengths):,} manifests of {sum(lengths):,} bytes, where {needed:,} would hold them"
        ledger.breach(rules.SMALL_MANIFESTS, subject.metadata.location, found)


def _snapshots(subject: Subject, ledger: Ledger) -> None:
    """Check for snapshots beyond the table's own retention, and for leftovers of an interrupted expiry."""
    metadata = subject.metadata
    if not get_bool(metadata.properties, GC_ENABLED):
        for rule in (rules.OLD_SNAPSHOTS, rules.UNFINISHED_EXPIRY):
            ledger.skip(rule, "gc.enabled is false: nothing of the table expires")
        return
    ledger.look_at(rules.OLD_SNAPSHOTS)
    old = expired(metadata, Retention(time.time_ns() // 1_000_000))
    if old:
        refs = f", and {len(old.refs):,} branches and tags" if old.refs else ""
        many = f"{len(old.snapshot_ids):,} of {len(metadata.snapshots):,} snapshots{refs}"
        ledger.breach(rules.OLD_SNAPSHOTS, subject.metadata_location, f"{many} are older than the table keeps them")
    ledger.look_at(rules.UNFINISHED_EXPIRY)
    known = with_what_is_stored(subject.io, metadata, subject.metadata_location)
    left = left_behind(subject.io, known, ()).snapshots
    if left:
        found = f"{len(left):,} snapshots have expired, and files of theirs are still there"
        ledger.breach(rules.UNFINISHED_EXPIRY, left[-1].manifest_list or metadata.location, found)


RULES: Final = RuleGroup(
    (
        rules.SMALL_FILES,
        rules.DELETE_DEBT,
        rules.SMALL_MANIFESTS,
        rules.OLD_SNAPSHOTS,
        rules.UNFINISHED_EXPIRY,
    ),
    examine_maintenance,
)

"""What upkeep would bring: small files, deletes that every reader applies, manifests and snapshots in plenty."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.health.findings import Finding
from icefield.health.tables import rules
from icefield.health.tables.ledger import Ledger
from icefield.health.tables.subject import Subject
from icefield.manifest import DataFileContent, EntryStatus
from icefield.manifest import schemas as f
from icefield.metadata.properties import (
    MANIFEST_TARGET_SIZE,
    MAX_SNAPSHOT_AGE_MS,
    WRITE_TARGET_FILE_SIZE,
    get_int,
)
from icefield.partitioning.tuples import tuple_groups

_RULES: Final = (rules.SMALL_FILES, rules.DELETE_DEBT, rules.SMALL_MANIFESTS, rules.OLD_SNAPSHOTS)
_SMALL: Final = 0.75
"""Below this part of the target a file is small; the same bound by which compaction chooses files."""
_ENOUGH: Final = 5
"""So many small files of one partition are worth joining."""
_DELETED: Final = 0.1
"""So large a part of the rows may be deleted before readers feel it."""


def examine_upkeep(subject: Subject) -> Iterator[Finding]:
    """The findings about the current snapshot's need of upkeep."""
    ledger = Ledger(_RULES)
    current = subject.metadata.current_snapshot()
    if current is not None:
        _files(subject, ledger)
        _manifests(subject, ledger)
    _snapshots(subject, ledger)
    yield from ledger.findings()


def _files(subject: Subject, ledger: Ledger) -> None:
    properties, where = subject.metadata.properties, subject.metadata.location
    limit = _SMALL * get_int(properties, WRITE_TARGET_FILE_SIZE)
    small, joined, bytes_, rows, deleted, delete_files = 0, 0, 0, 0, 0, 0
    for parts in _by_spec(subject).values():
        sizes = np.concatenate([sizes for sizes, _ in parts])
        partitions = pa.concat_arrays([tuples for _, tuples in parts])
        is_small = sizes < limit
        groups = tuple_groups(partitions.filter(pa.array(is_small)))[0] if len(partitions.type) else np.zeros(0, int)
        counts = np.bincount(groups) if len(groups) else np.array([int(is_small.sum())])
        enough = counts[counts >= _ENOUGH]
        small += int(enough.sum())
        joined += len(enough)
        bytes_ += int(sizes[is_small].sum()) if len(enough) else 0
    if small:
        found = f"{small:,} data files of {joined:,} partitions, {bytes_:,} bytes, are below {_SMALL:.0%} of the target"
        ledger.breach(rules.SMALL_FILES, where, found)
    for entries in subject.readable():
        live = entries.status() != EntryStatus.DELETED
        counts, content = np.asarray(entries.column(f.RECORD_COUNT))[live], np.asarray(entries.column(f.CONTENT))[live]
        rows += int(counts[content == DataFileContent.DATA].sum())
        deleted += int(counts[content != DataFileContent.DATA].sum())
        delete_files += int((content != DataFileContent.DATA).sum())
    if delete_files and deleted >= _DELETED * rows:
        ledger.breach(rules.DELETE_DEBT, where, f"{delete_files:,} delete files delete {deleted:,} of {rows:,} rows")


def _by_spec(subject: Subject) -> dict[int, list[tuple[np.ndarray, pa.StructArray]]]:
    """Sizes and partition tuples of the live data files, by spec."""
    found: dict[int, list[tuple[np.ndarray, pa.StructArray]]] = {}
    for entries in subject.readable():
        wanted = entries.status() != EntryStatus.DELETED
        wanted &= np.asarray(entries.column(f.CONTENT)) == DataFileContent.DATA
        if wanted.any():
            part = (np.asarray(entries.column(f.FILE_SIZE))[wanted], entries.partition.filter(pa.array(wanted)))
            found.setdefault(entries.spec_id, []).append(part)
    return found


def _manifests(subject: Subject, ledger: Ledger) -> None:
    current = subject.metadata.current_snapshot()
    lengths = [] if current is None else [manifest.manifest_length for manifest in subject.manifests(current)]
    target = get_int(subject.metadata.properties, MANIFEST_TARGET_SIZE)
    needed = -(-sum(lengths) // target)
    if len(lengths) >= 2 * _ENOUGH and len(lengths) > 2 * needed:
        found = f"{len(lengths):,} manifests of {sum(lengths):,} bytes, where {needed:,} would hold them"
        ledger.breach(rules.SMALL_MANIFESTS, subject.metadata.location, found)


def _snapshots(subject: Subject, ledger: Ledger) -> None:
    limit = time.time() * 1000 - get_int(subject.metadata.properties, MAX_SNAPSHOT_AGE_MS)
    heads = {head.snapshot_id for head in subject.heads()}
    old = [each for each in subject.metadata.snapshots if each.timestamp_ms < limit and each.snapshot_id not in heads]
    if old:
        found = f"{len(old):,} of {len(subject.metadata.snapshots):,} snapshots are older than the table keeps them"
        ledger.breach(rules.OLD_SNAPSHOTS, subject.metadata_location, found)

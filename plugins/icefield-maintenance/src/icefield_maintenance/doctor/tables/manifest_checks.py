"""Checks of manifest lists, manifests and their entries: each exists, and the lists match the manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import manifest as f
from icefield.engine import totals_of
from icefield.errors import IcefieldError
from icefield.manifest import (
    EntryStatus,
    ManifestContent,
    ManifestEntries,
    ManifestFile,
)
from icefield.metadata import TOTALS, Snapshot
from icefield.toolkit import from_arrow_scalar, value_from_bytes
from icefield.types import IcebergType, UnknownType

from icefield_maintenance.doctor.tables import entry_checks, rules
from icefield_maintenance.doctor.tables.groups import RuleGroup
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.subject import Subject

_COUNTS: Final = (
    (EntryStatus.ADDED, "added"),
    (EntryStatus.EXISTING, "existing"),
    (EntryStatus.DELETED, "deleted"),
)
_SIZE: Final = "total-files-size"
_DIGITS: Final = 19
"""The number of digits of the greatest 64-bit integer."""
_V3: Final = 3


@dataclass(frozen=True, slots=True)
class _Held:
    """The contribution of a manifest's live entries to the totals of a snapshot."""

    totals: Mapping[str, str]
    beside_vectors: int
    """Bytes of Puffin files beside the vector of the entry. The specification does not say whether they count."""


def examine_manifests(subject: Subject, ledger: Ledger) -> None:
    """Check the lists of all snapshots, and the manifests at the heads of branches and tags."""
    ledger.look_at(rules.MANIFEST_LISTS)
    heads = subject.heads()
    listed = [head for head in heads if _look_at_list(subject, head, ledger)]
    ledger.look_at(None)
    live: dict[str, _Held] = {}
    for claims in subject.claims():
        first, *others = claims
        entries = _look_at_manifest(subject, first, ledger)
        if entries is not None:
            live[first.manifest_path] = _Held(totals_of([entries]), _beside_vectors(entries))
            entry_checks.look_at_entries(subject, entries, ledger)
        for claim in others:
            _look_at_manifest(subject, claim, ledger)
    ledger.look_at(rules.SNAPSHOT_TOTALS)
    for head in listed:
        _look_at_totals(subject, head, live, ledger)
    ledger.look_at(rules.NEXT_ROW_ID)
    _look_at_row_ids_given(subject, ledger)
    ledger.look_at(rules.MANIFEST_LISTS)
    # Other lists come last, one after another: in the cache they would replace the lists of the heads, which are needed
    # again.
    known = {head.snapshot_id for head in heads}
    for snapshot in subject.metadata.snapshots:
        if snapshot.snapshot_id not in known:
            _look_at_list(subject, snapshot, ledger)


def _look_at_list(subject: Subject, snapshot: Snapshot, ledger: Ledger) -> bool:
    """Check that the list of a snapshot can be read. Access to its columns decodes it; before, only bytes are read."""
    try:
        _ = subject.manifest_list(snapshot).columns
    except IcefieldError as error:
        where = snapshot.manifest_list or subject.metadata_location
        ledger.breach(rules.MANIFEST_LISTS, where, f"the list of snapshot {snapshot.snapshot_id}: {error}")
        return False
    return True


def _look_at_row_ids_given(subject: Subject, ledger: Ledger) -> None:
    """Check that ``next-row-id`` is above the row ids that each snapshot states to have assigned."""
    following = _next_row_id(subject)
    if following is None:
        return
    for snapshot in subject.metadata.snapshots:
        end = (snapshot.first_row_id or 0) + (snapshot.added_rows or 0)
        if end > following:
            found = f"next-row-id is {following}, and snapshot {snapshot.snapshot_id} gave ids up to {end}"
            ledger.breach(rules.NEXT_ROW_ID, subject.metadata_location, found)


def _next_row_id(subject: Subject) -> int | None:
    return subject.metadata.next_row_id if subject.metadata.format_version >= _V3 else None


def _look_at_manifest(subject: Subject, manifest: ManifestFile, ledger: Ledger) -> ManifestEntries | None:
    """Compare a manifest with its entry in a list. Return its entries, if it can be read."""
    path = manifest.manifest_path
    ledger.look_at(rules.MANIFEST_FILES)
    try:
        length = subject.io.stat(path).size
        entries = subject.entries(manifest)
    except IcefieldError as error:
        ledger.breach(rules.MANIFEST_FILES, path, str(error))
        return None
    ledger.look_at(rules.MANIFEST_LENGTHS)
    if length != manifest.manifest_length:
        found = f"it has {length:,} bytes, and the list says {manifest.manifest_length:,}"
        ledger.breach(rules.MANIFEST_LENGTHS, path, found)
    ledger.look_at(rules.MANIFEST_COUNTS)
    _look_at_counts(manifest, entries, ledger)
    ledger.look_at(rules.MANIFEST_NUMBERS)
    _look_at_numbers(subject, manifest, entries, ledger)
    ledger.look_at(rules.MANIFEST_PARTITIONS)
    _look_at_partitions(subject, manifest, entries, ledger)
    ledger.look_at(rules.NEXT_ROW_ID)
    _look_at_row_ids(subject, manifest, entries, ledger)
    ledger.look_at(rules.SNAPSHOT_TOTALS)
    return entries


def _look_at_counts(manifest: ManifestFile, entries: ManifestEntries, ledger: Ledger) -> None:
    status, rows = entries.status(), np.asarray(entries.column(f.RECORD_COUNT))
    for kind, name in _COUNTS:
        mask = status == kind
        for what, stated, held in (
            ("files", getattr(manifest, f"{name}_files_count"), int(mask.sum())),
            ("rows", getattr(manifest, f"{name}_rows_count"), int(rows[mask].sum())),
        ):
            if stated is not None and stated != held:
                found = f"it has {held:,} {name} {what}, and the list says {stated:,}"
                ledger.breach(rules.MANIFEST_COUNTS, manifest.manifest_path, found)


def _look_at_numbers(subject: Subject, manifest: ManifestFile, entries: ManifestEntries, ledger: Ledger) -> None:
    if subject.metadata.format_version == 1:
        return
    path = manifest.manifest_path
    if manifest.sequence_number > subject.metadata.last_sequence_number:
        found = f"its number is {manifest.sequence_number}, above last-sequence-number"
        ledger.breach(rules.MANIFEST_NUMBERS, path, found)
    live = entries.column(f.SEQUENCE_NUMBER).filter(pa.array(entries.status() != EntryStatus.DELETED))
    lowest = pc.min(live).as_py()
    if lowest is not None and manifest.min_sequence_number > lowest:
        found = f"a file in it has number {lowest}, and the list says that none is below {manifest.min_sequence_number}"
        ledger.breach(rules.MANIFEST_NUMBERS, path, found)


def _look_at_row_ids(subject: Subject, manifest: ManifestFile, entries: ManifestEntries, ledger: Ledger) -> None:
    """Whether ``next-row-id`` is above the row ids of every live data file, inherited ones included."""
    following = _next_row_id(subject)
    if following is None or manifest.content is not ManifestContent.DATA:
        return
    stated = entries.column(f.FIRST_ROW_ID)
    has_ids = (entries.status() != EntryStatus.DELETED) & np.asarray(stated.is_valid())
    first, rows = np.asarray(pc.fill_null(stated, 0)), np.asarray(entries.column(f.RECORD_COUNT))
    # Numbers are subtracted, since the sum of damaged numbers may have more than 64 bits.
    beyond = has_ids & (rows > 0) & (first > following - np.maximum(rows, 0))
    if beyond.any():
        end = int((first[beyond].astype(np.uint64) + rows[beyond].astype(np.uint64)).max())
        found = f"next-row-id is {following}, and rows of its files have ids up to {end}"
        ledger.breach(rules.NEXT_ROW_ID, manifest.manifest_path, found)


def _look_at_partitions(subject: Subject, manifest: ManifestFile, entries: ManifestEntries, ledger: Ledger) -> None:
    """Whether the summaries of the partition fields bound the tuples of all entries."""
    if manifest.partitions is None:
        return
    path, tuples = manifest.manifest_path, entries.partition
    fields = subject.partition_type(manifest.partition_spec_id).fields
    if len(manifest.partitions) != len(fields):
        found = f"the list has summaries of {len(manifest.partitions)} partition fields, and the spec {len(fields)}"
        ledger.breach(rules.MANIFEST_PARTITIONS, path, found)
        return
    for position, (field, summary) in enumerate(zip(fields, manifest.partitions, strict=True)):
        if isinstance(field.field_type, UnknownType):
            continue  # its source column is in no schema any more, so that the type of the bounds is unknown
        values = tuples.field(position)
        if values.null_count and not summary.contains_null:
            found = f"partition field '{field.name}' has nulls, and the list says that it has none"
            ledger.breach(rules.MANIFEST_PARTITIONS, path, found)
        known = _without_nan(values)
        if len(known) < len(values) and summary.contains_nan is False:
            found = f"partition field '{field.name}' has NaN, and the list says that it has none"
            ledger.breach(rules.MANIFEST_PARTITIONS, path, found)
        has_values = known.null_count < len(known)
        for bound, side, function in (
            (summary.lower_bound, "least", pc.min),
            (summary.upper_bound, "greatest", pc.max),
        ):
            if bound is None:
                if has_values:
                    # Readers skip the manifest: a missing bound means that all values are null or NaN.
                    found = f"partition field '{field.name}' has values, and the list does not say which is the {side}"
                    ledger.breach(rules.MANIFEST_PARTITIONS, path, found)
                continue
            value = _extreme(field.field_type, known, function)
            if value is None:
                continue
            try:
                stated = value_from_bytes(field.field_type, bound)
            except IcefieldError as error:
                found = f"what the list says is the {side} of partition field '{field.name}' cannot be read: {error}"
                ledger.breach(rules.MANIFEST_PARTITIONS, path, found)
                continue
            if (stated > value) if side == "least" else (stated < value):
                found = f"partition field '{field.name}' has {value!r}, and the list says that its {side} is {stated!r}"
                ledger.breach(rules.MANIFEST_PARTITIONS, path, found)


def _without_nan(values: pa.Array) -> pa.Array:
    """The values in Arrow's storage type, without NaN; nulls stay."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.fill_null(pc.is_nan(values), False)))
    return values


def _extreme(kind: IcebergType, values: pa.Array, function: Any) -> Any:
    """The least or greatest value that is not null; None if there is none, or if Arrow cannot order the type."""
    try:
        found = function(values)
    except pa.ArrowNotImplementedError:
        return None
    return from_arrow_scalar(kind, found) if found.is_valid else None


def _beside_vectors(entries: ManifestEntries) -> int:
    """The bytes of Puffin files beyond their live deletion vectors: engines count either the files or the vectors."""
    vectors = np.asarray(pc.equal(pc.utf8_lower(entries.column(f.FILE_FORMAT)), "puffin"))
    vectors &= entries.status() != EntryStatus.DELETED
    sizes, own = (np.asarray(pc.fill_null(entries.column(number), 0)) for number in (f.FILE_SIZE, f.CONTENT_SIZE))
    return int(np.maximum(sizes - own, 0)[vectors].sum())


def _look_at_totals(subject: Subject, head: Snapshot, live: Mapping[str, _Held], ledger: Ledger) -> None:
    """Check that the totals of a summary match the live entries. Totals are optional."""
    parts = [live.get(manifest.manifest_path) for manifest in subject.manifests(head)]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return
    for name in TOTALS:
        stated = head.summary.get(name, "")
        if not stated.isdecimal() or len(stated) > _DIGITS:
            continue  # engines do not read it as a number, and continue no total from it
        if not all(name in part.totals for part in known):
            continue  # damaged numbers make it negative, which another check reports
        held = sum(int(part.totals[name]) for part in known)
        most = held + sum(part.beside_vectors for part in known) if name == _SIZE else held
        if not held <= int(stated) <= most:
            found = f"{name} of snapshot {head.snapshot_id} is {int(stated):,}, and its manifests have {held:,}"
            ledger.breach(rules.SNAPSHOT_TOTALS, head.manifest_list or subject.metadata_location, found)


RULES: Final = RuleGroup(
    (
        rules.MANIFEST_LISTS,
        rules.MANIFEST_FILES,
        rules.MANIFEST_LENGTHS,
        rules.MANIFEST_COUNTS,
        rules.MANIFEST_NUMBERS,
        rules.MANIFEST_PARTITIONS,
        rules.NEXT_ROW_ID,
        rules.SNAPSHOT_TOTALS,
        *entry_checks.RULES,
    ),
    examine_manifests,
)

"""What is looked at in manifest lists and manifests: that each is there, and that a list says of it what it holds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import IcefieldError
from icefield.health.tables import rules
from icefield.health.tables.ledger import Ledger
from icefield.health.tables.subject import Subject
from icefield.manifest import (
    EntryStatus,
    ManifestContent,
    ManifestEntries,
    ManifestFile,
    read_manifest_list,
)
from icefield.manifest import schemas as f
from icefield.metadata.snapshots import Snapshot
from icefield.types import IcebergType, UnknownType
from icefield.types.values import from_arrow_scalar, from_bytes

RULES: Final = (
    rules.MANIFEST_LISTS,
    rules.MANIFEST_FILES,
    rules.MANIFEST_LENGTHS,
    rules.MANIFEST_COUNTS,
    rules.MANIFEST_NUMBERS,
    rules.MANIFEST_PARTITIONS,
    rules.SNAPSHOT_TOTALS,
)
_COUNTS: Final = (
    (EntryStatus.ADDED, "added"),
    (EntryStatus.EXISTING, "existing"),
    (EntryStatus.DELETED, "deleted"),
)
_TOTALS: Final = (
    ("total-records", ManifestContent.DATA, "rows"),
    ("total-data-files", ManifestContent.DATA, "files"),
    ("total-delete-files", ManifestContent.DELETES, "files"),
)


def examine_manifests(subject: Subject, ledger: Ledger) -> None:
    """Look at the lists of all snapshots, and the manifests at the heads of branches and tags."""
    ledger.look_at(rules.MANIFEST_LISTS)
    for snapshot in subject.metadata.snapshots:
        _look_at_list(subject, snapshot, ledger)
    live: dict[str, tuple[int, int]] = {}
    for claims in subject.claims():
        held = [_look_at_manifest(subject, claim, ledger) for claim in claims]
        if held[0] is not None:
            live[claims[0].manifest_path] = held[0]
    ledger.look_at(rules.SNAPSHOT_TOTALS)
    for head in subject.heads():
        _look_at_totals(subject, head, live, ledger)


def _look_at_list(subject: Subject, snapshot: Snapshot, ledger: Ledger) -> None:
    try:
        read_manifest_list(subject.io, snapshot, subject.metadata)
    except IcefieldError as error:
        where = snapshot.manifest_list or subject.metadata_location
        ledger.breach(rules.MANIFEST_LISTS, where, f"the list of snapshot {snapshot.snapshot_id}: {error}")


def _look_at_manifest(subject: Subject, manifest: ManifestFile, ledger: Ledger) -> tuple[int, int] | None:
    """Compare a manifest with what a list says of it; give its live files and their rows, where it can be read."""
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
    ledger.look_at(rules.SNAPSHOT_TOTALS)
    alive = entries.status() != EntryStatus.DELETED
    return int(alive.sum()), int(np.asarray(entries.column(f.RECORD_COUNT))[alive].sum())


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
            continue  # its source column is in no schema any more: what the bounds say cannot be told
        values = tuples.field(position)
        if values.null_count and not summary.contains_null:
            found = f"partition field '{field.name}' has nulls, and the list says that it has none"
            ledger.breach(rules.MANIFEST_PARTITIONS, path, found)
        for bound, side, function in (
            (summary.lower_bound, "least", pc.min),
            (summary.upper_bound, "greatest", pc.max),
        ):
            value = _extreme(field.field_type, values, function)
            if bound is None or value is None:
                continue
            stated = from_bytes(field.field_type, bound)
            if (stated > value) if side == "least" else (stated < value):
                found = f"partition field '{field.name}' has {value!r}, and the list says that its {side} is {stated!r}"
                ledger.breach(rules.MANIFEST_PARTITIONS, path, found)


def _extreme(kind: IcebergType, values: pa.Array, function: Any) -> Any:
    """The least or greatest value that is neither null nor NaN; None where there is none, or no order of Arrow's."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    try:
        found = function(values)
    except pa.ArrowNotImplementedError:
        return None
    return from_arrow_scalar(kind, found) if found.is_valid else None


def _look_at_totals(subject: Subject, head: Snapshot, live: dict[str, tuple[int, int]], ledger: Ledger) -> None:
    """Whether the totals of a summary are those of the live entries. A table need not have them."""
    manifests = subject.manifests(head)
    if any(manifest.manifest_path not in live for manifest in manifests):
        return
    for name, content, unit in _TOTALS:
        stated = head.summary.get(name) if head.summary is not None else None
        if stated is None or not stated.isdecimal():
            continue
        held = sum(
            live[manifest.manifest_path][unit == "rows"] for manifest in manifests if manifest.content is content
        )
        if int(stated) != held:
            found = f"{name} of snapshot {head.snapshot_id} is {int(stated):,}, and its manifests have {held:,}"
            ledger.breach(rules.SNAPSHOT_TOTALS, head.manifest_list or subject.metadata_location, found)

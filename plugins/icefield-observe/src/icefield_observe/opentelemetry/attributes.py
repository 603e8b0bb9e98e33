"""The attributes of spans and metrics: those of the conventions for databases, and those of Icefield."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icefield.abc import CommitMade, OperationEvent, ScanPlanned

SYSTEM: Final = "iceberg"
"""The value of ``db.system.name``; the conventions have none for Iceberg."""

Value = str | int | float

COUNTS: Final = {
    "added-records": "icefield.rows.added",
    "deleted-records": "icefield.rows.deleted",
    "added-data-files": "icefield.files.added",
    "deleted-data-files": "icefield.files.deleted",
    "added-files-size": "icefield.bytes.written",
}
"""The names of numbers in the summary of a snapshot, and of the metrics and attributes with them."""


def of_operation(event: OperationEvent) -> dict[str, Value]:
    """The attributes of an operation, which its metrics share."""
    if event.operation.endswith("-namespace"):
        return _of(event.operation, event.catalog, event.name, None)
    return _of(event.operation, event.catalog, event.name[:-1], event.name[-1] if event.name else None)


def of_table(operation: str, event: CommitMade | ScanPlanned) -> dict[str, Value]:
    """The attributes of a commit or a scan, which its metrics share."""
    return _of(operation, event.catalog, event.table[:-1], event.table[-1])


def of_commit(event: CommitMade) -> dict[str, Value]:
    """The attributes of a commit, for its span."""
    known = {
        "icefield.table.uuid": event.table_uuid,
        "icefield.snapshot.id": event.snapshot_id,
        "icefield.snapshot.operation": event.operation,
    }
    given: dict[str, Value] = {name: value for name, value in known.items() if value is not None}
    return {**given, "icefield.commit.attempts": event.attempts, **counts(event.summary)}


def of_scan(event: ScanPlanned) -> dict[str, Value]:
    """The attributes of a scan, for its span. The filter is left out: its values may be anybody's data."""
    known = {"icefield.table.uuid": event.table_uuid, "icefield.snapshot.id": event.snapshot_id}
    given: dict[str, Value] = {name: value for name, value in known.items() if value is not None}
    return {
        **given,
        "icefield.scan.files.planned": event.files_planned,
        "icefield.scan.files.skipped": event.files_skipped,
        "icefield.scan.manifests.read": event.manifests_read,
        "icefield.scan.manifests.skipped": event.manifests_skipped,
    }


def counts(summary: Mapping[str, str]) -> dict[str, int]:
    """The numbers of a summary that are metrics, by the names of these."""
    return {
        name: int(value)
        for key, name in COUNTS.items()
        if (value := summary.get(key, "")).isascii() and value.isdigit() and len(value) < 19
    }


def _of(operation: str, catalog: str | None, namespace: tuple[str, ...], table: str | None) -> dict[str, Value]:
    """The attributes of the conventions. They join the levels of a namespace, of which the catalog is the first."""
    levels = "|".join(namespace if catalog is None else (catalog, *namespace))
    found: dict[str, Value] = {"db.system.name": SYSTEM, "db.operation.name": operation}
    if levels:
        found["db.namespace"] = levels
    if table is not None:
        found["db.collection.name"] = table
    return found

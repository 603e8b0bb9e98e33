"""An event of each kind, with values where an event may have one, and with None where it may not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from icefield.abc import (
    CommitConflict,
    CommitMade,
    Event,
    MetricsReported,
    OperationFailed,
    OperationFinished,
    OperationProgress,
    OperationStarted,
    ScanPlanned,
)
from icefield.errors import CommitStateUnknown
from icefield.schema import Schema
from icefield.types import LongType, NestedField, StringType

OPERATIONS: Final = (
    "load-table",
    "plan-scan",
    "commit",
    "create-table",
    "register-table",
    "rename-table",
    "drop-table",
    "create-namespace",
    "update-namespace",
    "drop-namespace",
    "load-view",
    "create-view",
    "commit-view",
    "rename-view",
    "drop-view",
    "expire-snapshots",
    "rewrite-data-files",
)
_TABLE: Final = ("db", "t")
_ODD: Final = ("dä", 'a "b".c, d')
_FILE: Final = "memory://kit/db/t/metadata/v1.metadata.json"
_HOME: Final = "memory://kit/db/t"
_SCHEMA: Final = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "kind", StringType()))
_SUMMARY: Final = {"operation": "append", "added-records": "2", "note": 'ü "x"'}


def sample_events() -> Iterator[Event]:
    """Events of every kind and of every operation, each made afresh."""
    yield from _scans_and_commits()
    for number, operation in enumerate(OPERATIONS):
        name = ("db",) if operation.endswith("namespace") else (_TABLE, _ODD)[number % 2]
        facts: dict[str, Any] = {
            "operation": operation,
            "name": name,
            "id": f"00000000-0000-4000-8000-{number:012}",
            "catalog": "kit" if number % 3 else None,
            "parent": f"00000000-0000-4000-8000-{number - 1:012}" if number % 2 else None,
            "new_name": ("db", "u") if operation.startswith("rename") else None,
        }
        yield OperationStarted(**facts)
        yield OperationFinished(**facts, seconds=0.25, updates={"owner": "ü"}, removals=("zone",))
        yield OperationFinished(**facts)
        yield OperationFailed(**facts, seconds=0.25, error=CommitStateUnknown("the reply was lost"))
        yield OperationFailed(**facts, error=KeyboardInterrupt())


def _scans_and_commits() -> Iterator[Event]:
    yield ScanPlanned(_TABLE, None, "true", 0, 0, 0, 0, 0.0)
    yield ScanPlanned(
        _TABLE, 1, 'kind = "ü"', 2, 1, 5, 4, 0.5, "kit", "a-uuid", 3, ((1, "id"), (2, "kind")), None, _HOME, _SCHEMA
    )
    yield CommitMade(_ODD, _FILE, None, None, 1, 0.0)
    yield CommitMade(_TABLE, _FILE, 2**62, "append", 3, 0.5, "kit", "a-uuid", 7, dict(_SUMMARY), _HOME, _SCHEMA)
    yield CommitConflict(_TABLE, 1, None, None)
    yield CommitConflict(_TABLE, 2, _FILE, _FILE)
    yield OperationProgress(_TABLE, "expire-snapshots", "data files", 0, None)
    yield OperationProgress(_TABLE, "rewrite-data-files", "groups of files", 3, 3)
    yield MetricsReported(_TABLE, "scan", -1, None, {})
    yield MetricsReported(_TABLE, "commit", 1, "append", {"total-duration": 0.5, "attempts": 1})


@dataclass(frozen=True, slots=True)
class _LaterEvent:
    """An event of a kind that this version does not have."""

    colour: str = "red"


def later_events() -> Iterator[Any]:
    """Events of a later version: an unknown record, and an unknown operation."""
    yield _LaterEvent()
    facts: dict[str, Any] = {"operation": "paint-table", "name": ("db", "t", "red"), "id": "no-uuid"}
    yield OperationStarted(**facts)
    yield OperationFinished(**facts)
    yield OperationFailed(**facts, error=RuntimeError())

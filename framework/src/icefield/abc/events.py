"""Events for listeners: frozen records of operations, scans, commits and maintenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icefield.expressions import BooleanExpression
    from icefield.schema import Schema


@dataclass(frozen=True, slots=True)
class OperationEvent:
    """The start or the end of an operation: of loading, scanning, changing or maintaining a table, for example.

    ``operation`` is its kind, such as ``create-table``. ``name`` is the name of the table, view or namespace, and
    ``new_name`` its name after a rename. ``id`` is a UUID, the same for the start and the end. ``parent`` is the id of
    the operation of this thread that this one is part of.
    """

    operation: str
    name: tuple[str, ...]
    id: str
    catalog: str | None = None
    parent: str | None = None
    new_name: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class OperationStarted(OperationEvent):
    """An operation has started."""


@dataclass(frozen=True, slots=True)
class OperationFinished(OperationEvent):
    """An operation has finished without an error; ``updates`` and ``removals`` are the properties that it changed."""

    seconds: float = 0.0
    updates: Mapping[str, str] = field(default_factory=dict, repr=False)
    removals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OperationFailed(OperationEvent):
    """An operation has ended in ``error``. After ``CommitStateUnknown`` the change may be visible."""

    seconds: float = 0.0
    error: BaseException = field(default_factory=Exception)


@dataclass(frozen=True, slots=True)
class ScanPlanned:
    """A scan was planned to its end.

    ``expression`` is the bound form of ``row_filter``; ``projected`` are the ids and names of the columns that are read
    of ``schema``. ``location`` is that of the table.
    """

    table: tuple[str, ...]
    snapshot_id: int | None
    row_filter: str
    manifests_read: int
    manifests_skipped: int
    files_planned: int
    files_skipped: int
    seconds: float
    catalog: str | None = None
    table_uuid: str | None = None
    schema_id: int = 0
    projected: tuple[tuple[int, str], ...] = ()
    expression: BooleanExpression | None = field(default=None, repr=False)
    location: str | None = None
    schema: Schema | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class CommitMade:
    """A commit became visible, after ``attempts`` attempts; ``summary`` is the snapshot's summary, if any.

    ``location`` and ``schema`` are those of the table after the commit.
    """

    table: tuple[str, ...]
    metadata_location: str
    snapshot_id: int | None
    operation: str | None
    attempts: int
    seconds: float
    catalog: str | None = None
    table_uuid: str | None = None
    sequence_number: int | None = None
    summary: Mapping[str, str] = field(default_factory=dict, repr=False)
    location: str | None = None
    schema: Schema | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class CommitConflict:
    """An attempt to commit lost to another commit; a retry may follow."""

    table: tuple[str, ...]
    attempt: int
    base_location: str | None
    current_location: str | None


@dataclass(frozen=True, slots=True)
class OperationProgress:
    """The progress of an operation: ``done`` of ``total`` items of a ``step``; ``total`` is None if unknown.

    The operations ``scan``, ``write``, ``rewrite-rows`` and ``add-files`` end with ``done`` equal to ``total``.
    """

    table: tuple[str, ...]
    operation: str
    step: str
    done: int
    total: int | None


@dataclass(frozen=True, slots=True)
class MetricsReported:
    """A client of a table server has reported the metrics of a scan or a commit.

    ``kind`` is ``scan`` or ``commit``. ``metrics`` are counts, and durations in seconds, by the names of the REST
    catalog protocol, such as ``total-planning-duration``.
    """

    table: tuple[str, ...]
    kind: str
    snapshot_id: int
    operation: str | None
    metrics: Mapping[str, float]


Event = OperationEvent | ScanPlanned | CommitMade | CommitConflict | OperationProgress | MetricsReported
"""Every record that ``icefield_events`` may be called with."""

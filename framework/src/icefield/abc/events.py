"""What listeners hear: frozen records of what happened."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScanPlanned:
    """A scan was planned to its end."""

    table: tuple[str, ...]
    snapshot_id: int | None
    row_filter: str
    manifests_read: int
    manifests_skipped: int
    files_planned: int
    files_skipped: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CommitMade:
    """A commit became visible, after ``attempts`` attempts."""

    table: tuple[str, ...]
    metadata_location: str
    snapshot_id: int | None
    operation: str | None
    attempts: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CommitConflict:
    """An attempt to commit lost to another commit; a retry may follow."""

    table: tuple[str, ...]
    attempt: int
    base_location: str | None
    current_location: str | None


@dataclass(frozen=True, slots=True)
class UpkeepProgress:
    """Upkeep has come so far: ``done`` of ``total`` steps, such as files deleted; None where nobody can know."""

    table: tuple[str, ...]
    operation: str
    step: str
    done: int
    total: int | None


Event = ScanPlanned | CommitMade | CommitConflict | UpkeepProgress
"""Every record that ``icefield_events`` may be called with."""

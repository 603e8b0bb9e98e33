"""Scans of a table: its rows, its appended rows and its changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from icefield import scan as scans
from icefield.abc import ScanService
from icefield.expressions import AlwaysTrue, Filter
from icefield.metadata import TableMetadata, Timestamp
from icefield.storage import FileIO

if TYPE_CHECKING:
    from icefield.scan import IncrementalAppendScan, IncrementalChangelogScan, TableScan

_NO_STRINGS: Mapping[str, str] = {}


class ReadableTable(ABC):
    """The read methods of a table, based on its metadata and file IO."""

    @property
    @abstractmethod
    def metadata(self) -> TableMetadata:
        """Everything about this version."""

    @property
    @abstractmethod
    def io(self) -> FileIO:
        """The file IO of its files."""

    @abstractmethod
    def name(self) -> tuple[str, ...]:
        """The levels of its namespace, and its own name."""

    @property
    def planner(self) -> ScanService | None:
        """The service that plans its scans; None without a service."""
        return None

    @property
    def columns(self) -> list[str]:
        """The names of its columns, in their order."""
        return [field.name for field in self.metadata.schema().fields]

    def scan(
        self,
        row_filter: Filter = AlwaysTrue(),  # noqa: B008 -- immutable
        selected_fields: tuple[str, ...] = ("*",),
        case_sensitive: bool = True,
        snapshot_id: int | None = None,
        options: Mapping[str, str] = _NO_STRINGS,
        limit: int | None = None,
        *,
        ref: str | None = None,
        as_of: Timestamp | None = None,
    ) -> TableScan:
        """Read the rows that match a filter, with all or some columns, at a snapshot, branch, tag or time.

        ``as_of`` selects the current version at a time, by the snapshot log: ms since 1970 UTC, a ``datetime`` or a
        string in ISO form.
        """
        shared = self._shared(row_filter, selected_fields, case_sensitive, limit)
        scan = scans.TableScan(**shared, snapshot_id=snapshot_id, ref=ref, options=options, service=self.planner)
        return scan if as_of is None else scan.as_of(as_of)

    def incremental_append_scan(
        self,
        row_filter: Filter = AlwaysTrue(),  # noqa: B008 -- immutable
        selected_fields: tuple[str, ...] = ("*",),
        case_sensitive: bool = True,
        *,
        from_snapshot_id_exclusive: int | None = None,
        from_snapshot_id_inclusive: int | None = None,
        to_snapshot_id_inclusive: int | None = None,
        from_timestamp: Timestamp | None = None,
        to_timestamp: Timestamp | None = None,
        ref: str | None = None,
        options: Mapping[str, str] = _NO_STRINGS,
        limit: int | None = None,
    ) -> IncrementalAppendScan:
        """Read the rows that appends added between two snapshots, even if later snapshots changed or deleted them.

        The range begins at the oldest ancestor that is kept and ends at the head of ``ref`` (a branch or tag; ``main``
        by default), unless a start or an end is given. A start time is exclusive, an end time is inclusive.
        """
        ids = from_snapshot_id_exclusive, from_snapshot_id_inclusive, to_snapshot_id_inclusive
        return scans.IncrementalAppendScan(
            **self._shared(row_filter, selected_fields, case_sensitive, limit),
            options=options,
            service=self.planner,
            range=scans.SnapshotRange(*ids, from_timestamp, to_timestamp, ref),
        )

    def incremental_changelog_scan(
        self,
        row_filter: Filter = AlwaysTrue(),  # noqa: B008 -- immutable
        selected_fields: tuple[str, ...] = ("*",),
        case_sensitive: bool = True,
        *,
        from_snapshot_id_exclusive: int | None = None,
        from_snapshot_id_inclusive: int | None = None,
        to_snapshot_id_inclusive: int | None = None,
        from_timestamp: Timestamp | None = None,
        to_timestamp: Timestamp | None = None,
        ref: str | None = None,
        net_changes: bool = False,
        compute_updates: bool | None = None,
        identifier_columns: Sequence[str] = (),
        remove_carryovers: bool = True,
        limit: int | None = None,
    ) -> IncrementalChangelogScan:
        """Read the changed rows between two snapshots.

        The rows have the columns ``_change_type``, ``_change_ordinal`` and ``_commit_snapshot_id``. See
        ``incremental_append_scan`` for the range and ``IncrementalChangelogScan`` for the options.
        """
        ids = from_snapshot_id_exclusive, from_snapshot_id_inclusive, to_snapshot_id_inclusive
        return scans.IncrementalChangelogScan(
            **self._shared(row_filter, selected_fields, case_sensitive, limit),
            range=scans.SnapshotRange(*ids, from_timestamp, to_timestamp, ref),
            net_changes=net_changes,
            compute_updates=compute_updates,
            identifier_columns=identifier_columns,
            remove_carryovers=remove_carryovers,
        )

    def _shared(
        self, row_filter: Filter, selected_fields: tuple[str, ...], case_sensitive: bool, limit: int | None
    ) -> dict[str, Any]:
        """The arguments of every kind of scan."""
        found = {"metadata": self.metadata, "io": self.io, "identifier": self.name(), "row_filter": row_filter}
        return {**found, "selected_fields": selected_fields, "case_sensitive": case_sensitive, "limit": limit}

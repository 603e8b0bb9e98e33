"""A scan of the rows and columns of one version of a table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from icefield.abc import WorkRunner
from icefield.base.concurrency import lazy
from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.expressions import AlwaysTrue
from icefield.metadata import Snapshot, Timestamp, as_milliseconds
from icefield.scan.file_scan import FileScan
from icefield.scan.planning.planner import ScanPlanner
from icefield.scan.snapshot_range import head_of_ref
from icefield.schema import Schema


@dataclass(frozen=True, repr=False)
class TableScan(FileScan):
    """Rows and columns of one version of a table. Immutable: methods that change the selection return a new scan.

    ``row_filter`` is an expression or its string. ``selected_fields`` are names of columns (``"a.b"`` for nested ones;
    ``"*"`` is all) and of metadata columns (``_file``, ``_pos``, ...). ``snapshot_id`` or ``ref`` (a branch or tag)
    state the version; the default is the head of ``main``. A snapshot or tag is read with the snapshot's schema, a
    branch with the current schema. ``limit`` is the maximum number of rows. ``options``: ``split-size``,
    ``split-lookback`` and ``split-file-open-cost`` for ``plan_tasks``. ``dictionary_columns``: see
    ``with_dictionaries``. ``runner``: see ``planned_on``. Commits after the creation of the scan do not affect it.
    """

    snapshot_id: int | None = None
    ref: str | None = None
    runner: WorkRunner | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.snapshot_id is not None and self.ref is not None:
            raise InvalidArgument("a scan reads a snapshot or a branch or tag, not both")
        super().__post_init__()

    def use_snapshot(self, snapshot_id: int) -> TableScan:
        """The version of that snapshot. Raises ``NoSuchSnapshot``."""
        return self._at(snapshot_id=snapshot_id)

    def use_ref(self, name: str) -> TableScan:
        """The version of a branch or tag. Raises ``NoSuchSnapshot`` when the table has none of that name."""
        return self._at(ref=name)

    def as_of(self, timestamp_ms: Timestamp) -> TableScan:
        """The version that was current at a time, by the table's snapshot log.

        ``timestamp_ms``: ms since 1970 UTC, a ``datetime``, or a string in ISO form; see ``Timestamp``. Raises
        ``NoSuchSnapshot`` if the log does not reach back that far, ``InvalidArgument`` for an invalid time.
        """
        found = self.metadata.snapshot_as_of(as_milliseconds(timestamp_ms), self._called)
        return self._at(snapshot_id=found.snapshot_id)

    def planned_on(self, runner: WorkRunner) -> TableScan:
        """The same scan with a runner for large manifests, such as the tasks of a cluster."""
        return replace(self, runner=runner)

    @lazy
    def snapshot(self) -> Snapshot | None:
        """The snapshot to read; None for a table without one. Raises ``NoSuchSnapshot``."""
        metadata = self.metadata
        if self.snapshot_id is not None:
            found = metadata.snapshot_by_id(self.snapshot_id)
            if found is None:
                raise NoSuchSnapshot(
                    f"table {self._called} has no snapshot {self.snapshot_id}", snapshot_id=self.snapshot_id
                )
            return found
        return head_of_ref(metadata, self.ref, self._called)

    @lazy
    def schema(self) -> Schema:
        """The table's columns in the selected version."""
        snapshot = self.snapshot
        if snapshot is None or not self._is_of_snapshot:
            return self.metadata.schema()
        return self.metadata.schema_of(snapshot)

    def planner(self, *, include_stats: bool = False, prove: bool = False) -> ScanPlanner | None:
        """The planner of this scan, with the options of ``ScanPlanner``; None for a table without a snapshot."""
        snapshot = self.snapshot
        if snapshot is None:
            return None
        return ScanPlanner(
            self.metadata,
            self.io,
            snapshot,
            self.schema,
            self._bound_filter,
            statistics=include_stats,
            prove=prove,
            identifier=self.identifier,
            runner=self.runner,
            projected=self.projection,
        )

    @property
    def _is_of_snapshot(self) -> bool:
        """Whether names refer to the snapshot's columns, not to the table's."""
        if self.snapshot_id is not None or self.ref is None:
            return self.snapshot_id is not None
        ref = self.metadata.ref(self.ref)
        return ref is not None and not ref.is_branch

    def _expected_rows(self) -> int | None:
        is_whole = self.limit is None and isinstance(self.row_filter, AlwaysTrue)
        rows = self.snapshot.summary.get("total-records", "") if is_whole and self.snapshot else ""
        return int(rows) if rows.isascii() and rows.isdigit() and len(rows) < 20 else None

    def _version_asked(self) -> tuple[int, int | None, bool] | None:
        snapshot = self.snapshot
        return None if snapshot is None else (snapshot.snapshot_id, None, self._is_of_snapshot)

    def _at(self, **version: Any) -> TableScan:
        if self.snapshot_id is not None or self.ref is not None:
            raise InvalidArgument("the scan reads a certain version already")
        scan = replace(self, **version)
        _ = scan.snapshot  # raises now if there is none
        return scan

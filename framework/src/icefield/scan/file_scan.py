"""Scans of whole data files: planned by a planner, read file by file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa

from icefield.abc import FormatAbility, OperationProgress, ScanPlanRequest, ScanService
from icefield.base.concurrency import lazy
from icefield.expressions import AlwaysFalse, AlwaysTrue
from icefield.manifest import schemas as f
from icefield.metadata.properties import (
    SPLIT_ADAPTIVE_SIZE_ENABLED,
    SPLIT_OPEN_FILE_COST,
    SPLIT_PLANNING_LOOKBACK,
    SPLIT_TARGET_SIZE,
    get_bool,
    get_int,
)
from icefield.scan.base_scan import BaseScan
from icefield.scan.planning.plan_table import PlanTable
from icefield.scan.planning.planned_files import PlannedFiles, PlannedManifest
from icefield.scan.planning.splits import combine_tasks, split_task
from icefield.scan.reading import read_tasks
from icefield.scan.served import ServedScan
from icefield.scan.tasks import FileScanTask, ScanContext
from icefield.schema import Schema, schema_to_arrow
from icefield.types.arrow.pieces import numbers_of
from icefield.types.arrow.types import with_dictionaries
from icefield.types.reserved import LAST_UPDATED_SEQUENCE_NUMBER

_LEAST_SPLIT = 16 << 20
"""The minimum split size in bytes: below it, opening a file costs more than parallel reads save."""


class FilePlanner(Protocol):
    """Finds the data files of a scan."""

    def files(self, first: int = 0, rows: int | None = None) -> Iterator[PlannedFiles]:
        """The files that may hold matching rows, manifest by manifest, with the deletes that apply to them.

        ``first`` is the first manifest, by ``PlannedFiles.place``; ``rows`` is the approximate number of entries to
        read ahead.
        """


@dataclass(frozen=True, repr=False)
class FileScan(BaseScan):
    """A scan that reads data files; a subclass selects them.

    ``options``: ``split-size``, ``split-lookback`` and ``split-file-open-cost`` for ``plan_tasks``.
    ``dictionary_columns``: see ``with_dictionaries``. ``service`` plans the files to read, if the catalog has such a
    service.
    """

    service: ScanService | None = field(default=None, repr=False, compare=False)

    def with_dictionaries(self, *names: str) -> Self:
        """The scan with these columns as Arrow dictionaries, replacing the columns named before.

        They must be top-level columns of type string or binary. Repeated values then take less memory, and files
        with dictionaries are read faster. In pandas they become categories.
        """
        return replace(self, dictionary_columns=names)

    def plan_files(self, *, include_stats: bool = False) -> Iterator[FileScanTask]:
        """One task for each data file that may hold matching rows, as planning finds them.

        ``include_stats``: whether each task's ``file`` has its column statistics. Raises ``InvalidMetadata`` for a
        damaged manifest or manifest list, and for an invalid plan of a service.
        """
        served = self._served
        if served is not None:
            yield from served.tasks(statistics=include_stats)
            return
        for planned in self._planned(include_stats=include_stats):
            yield from planned.tasks()

    def plan_manifests(
        self, *, include_stats: bool = False, first: int = 0, rows: int | None = None
    ) -> Iterator[PlannedManifest]:
        """The plan in columns, one manifest at a time, in an order that depends only on the version and the filter.

        ``first`` is the first manifest to read, for example to continue a partial plan. ``rows`` is the approximate
        number of entries to read ahead, for a consumer that takes no more. Only a complete plan, from the first
        manifest to the end, is sure to detect a file that is listed twice.
        """
        planner = self.planner(include_stats=include_stats)
        for planned in () if planner is None else planner.files(first, rows):
            yield PlannedManifest.of(planned)

    def plan_arrow(self, *, include_stats: bool = False) -> pa.Table:
        """The plan as a table, one row for each data file; ``partition`` has the fields of all specs.

        The plan of a service does not state the commits of the files: their sequence numbers and snapshots are null.
        """
        served = self._served
        parts = served.parts(statistics=include_stats) if served else self._planned(include_stats=include_stats)
        return PlanTable(self._united_partition, statistics=include_stats).table(parts)

    def plan_tasks(self, at_least: int = 1) -> Iterator[tuple[FileScanTask, ...]]:
        """The plan in groups of about equal size: large files are split if possible, small ones are combined.

        The table's ``read.split.*`` properties or the scan's ``options`` set the size. ``at_least`` is the minimum
        number of groups, as long as each has 16 MiB. It is ignored if ``options`` set a size, or if the table disables
        ``read.split.adaptive-size.enabled``.
        """
        target = self._number("split-size", SPLIT_TARGET_SIZE)
        files = self.plan_files()
        adapts = at_least > 1 and "split-size" not in self.options
        if adapts and get_bool(self.metadata.properties, SPLIT_ADAPTIVE_SIZE_ENABLED):
            known = list(files)
            size = sum(task.file.file_size_in_bytes for task in known)
            target, files = min(target, max(size // at_least, _LEAST_SPLIT)), iter(known)
        return combine_tasks(
            (piece for task in files for piece in self._pieces(task, target)),
            target,
            lookback=self._number("split-lookback", SPLIT_PLANNING_LOOKBACK),
            open_file_cost=self._number("split-file-open-cost", SPLIT_OPEN_FILE_COST),
        )

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of batches, read ahead of the consumer in bounded memory."""
        schema = with_dictionaries(schema_to_arrow(self.projection), self._dictionaries)
        return pa.RecordBatchReader.from_batches(schema, self.read(self.context))

    def read(self, context: ScanContext) -> Iterator[pa.RecordBatch]:
        """The rows with the columns of ``context``, read ahead; listeners are told how many were taken."""
        event = OperationProgress(self.identifier, "scan", "rows", 0, self._expected_rows())
        batches = read_tasks(self.plan_files(), context, self.limit)
        return self.io.listeners.counting(batches, event)

    def count(self) -> int:
        """The number of rows, at most ``limit``. Files that match as a whole are counted without reading them."""
        context, limit = replace(self.context, projection=Schema(), dictionaries=frozenset()), self.limit
        served, counted, read = self._served, 0, 0

        def unread() -> Iterator[FileScanTask]:
            nonlocal counted
            parts = map(_counted, self._planned(prove=True)) if served is None else served.counted()
            for rows, tasks in parts:
                counted += rows
                if limit is not None and counted >= limit:
                    return
                yield from tasks

        for batch in read_tasks(unread(), context):
            read += batch.num_rows
            if limit is not None and counted + read >= limit:
                break
        return counted + read if limit is None else min(counted + read, limit)

    def _expected_rows(self) -> int | None:
        """The number of rows, if it is known without planning. It is not certain."""
        return None

    @lazy
    def context(self) -> ScanContext:
        """The context for reading the tasks of this scan, here or on another machine."""
        served, context = self._served, super().context
        return context if served is None else replace(context, io=served.io)

    @lazy
    def _served(self) -> ServedScan | None:
        """The scan as planned by the service; None without a service, or if it cannot plan this scan."""
        if self.service is None or LAST_UPDATED_SEQUENCE_NUMBER.field_id in self.projection.field_ids:
            return None
        version = self._version_asked()
        if version is None:
            return None
        snapshot_id, begin, of_snapshot = version
        names = tuple(name for name in self.selected_fields if name != "*" and self.schema.has_field(name))
        asked = ScanPlanRequest(
            self.metadata,
            self.schema,
            snapshot_id,
            () if "*" in self.selected_fields else names,
            self._bound_filter,
            self.case_sensitive,
            of_snapshot,
            self.limit,
            begin,
        )
        return ServedScan(self.service, asked, self.io, self.identifier, self.projection)

    @abstractmethod
    def _version_asked(self) -> tuple[int, int | None, bool] | None:
        """The version for a service: a snapshot, the snapshot before the appends, and a flag.

        The second is None for all files. The flag says whether names refer to the snapshot's schema. Returns None if a
        service cannot plan the scan.
        """

    @abstractmethod
    def planner(self, *, include_stats: bool = False, prove: bool = False) -> FilePlanner | None:
        """The planner of this scan; None if there is nothing to read.

        ``include_stats``: whether the files have their column statistics. ``prove``: whether to find files that match
        as a whole, by these statistics.
        """

    def _planned(self, **options: bool) -> Iterator[PlannedFiles]:
        planner = self.planner(**options)
        return iter(()) if planner is None else planner.files()

    def _number(self, option: str, declared: Any) -> int:
        given = self.options.get(option)
        return get_int(self.metadata.properties if given is None else {declared.name: str(given)}, declared)

    def _pieces(self, task: FileScanTask, target: int) -> Iterator[FileScanTask]:
        if FormatAbility.SPLITS in self.io.file_format(task.file.file_format).abilities:
            return split_task(task, target)
        return iter((task,))


def _counted(files: PlannedFiles) -> tuple[int, Iterator[FileScanTask]]:
    """The number of rows of the files that match as a whole, and the tasks for files that must be read.

    All other files have no matching rows.
    """
    groups, residuals = files.residual_groups
    whole = np.array([isinstance(residual, AlwaysTrue) for residual in residuals])[groups]
    never = np.array([isinstance(residual, AlwaysFalse) for residual in residuals])[groups]
    if files.proven is not None:
        whole |= files.proven
    # A count of 0 or less is not trusted: read the file, since a wrong count would hide its rows.
    counts = numbers_of(files.entries.column(f.RECORD_COUNT))
    whole &= counts > 0
    deleted = np.zeros(len(counts), np.int64)
    if files.deletes is not None:
        # A deletion vector states its number of deleted rows, at least one. Other deletes may overlap, or delete
        # missing rows.
        rows, positions = files.deletes.vectors()
        known = (positions > 0) & (positions <= counts[rows])
        deleted[rows[known]] = positions[known]
        uncounted = files.deletes.counts() > 0
        uncounted[rows[known]] = False
        whole &= ~uncounted
    left = (counts - deleted)[whole]
    # Summed in halves, since the counts of an invalid manifest may exceed a long.
    total = (int((left >> 32).sum()) << 32) + int((left & 0xFFFF_FFFF).sum())
    return total, files.tasks(np.flatnonzero(~(whole | never)).tolist())

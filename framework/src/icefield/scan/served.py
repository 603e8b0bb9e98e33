"""Scans that a service plans, with tasks from its lists of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from icefield.abc import ScanListing, ScanPlanRequest, ScanService
from icefield.base.concurrency import lazy
from icefield.base.secrets import without_userinfo
from icefield.errors import InvalidMetadata
from icefield.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, Residuals
from icefield.manifest import DataFile
from icefield.scan.planning.planner import PlanReport
from icefield.scan.tasks import FileScanTask, PlannedTask, TaskRows
from icefield.schema import Schema
from icefield.storage import FileIO


@dataclass(eq=False)
class ServedScan:
    """A scan that a service plans.

    The residual filter of a file is computed here, from its partition. The service decides which files are opened, but
    not which of their rows are returned.
    """

    _service: ScanService
    _asked: ScanPlanRequest
    _io: FileIO
    _identifier: tuple[str, ...]
    _projected: Schema
    _first: ScanListing | None = None
    _residuals: dict[int, Residuals] = field(default_factory=dict)

    @lazy
    def io(self) -> FileIO:
        """The file IO for the listed files. Requests the plan, because it may contain the credentials."""
        self._first = self._listing()
        access = self._first.access
        return self._io.opened_by(access) if access else self._io

    def tasks(self, *, statistics: bool = False) -> Iterator[FileScanTask]:
        """One task for each file. Raises ``InvalidMetadata`` for an invalid list."""
        for part in self.parts(statistics=statistics):
            yield from part.tasks()

    def parts(self, *, statistics: bool = False) -> Iterator[ServedFiles]:
        """The files, in the parts of the service's list; with column statistics, if the service has them."""
        asked = self._asked
        schema_id = asked.schema.schema_id
        report = PlanReport(self._io, self._identifier, asked.row_filter, asked.metadata, schema_id, self._projected)
        return report.told(self._listed(report, statistics))

    def _listed(self, report: PlanReport, statistics: bool) -> Iterator[ServedFiles]:
        if isinstance(self._asked.row_filter, AlwaysFalse):
            return
        seen = set[str]()
        if statistics:
            listing = self._listing(statistics=True)
        else:
            listing, self._first = self._first or self._listing(), None
        with closing(listing.parts) as parts:  # type: ignore[type-var]
            for part in parts:
                _refuse_again((file for file, _ in part), seen)
                yield ServedFiles(self, part)
        report.files_planned = len(seen)
        report.tell(self._asked.snapshot_id)

    def counted(self) -> Iterator[tuple[int, tuple[FileScanTask, ...]]]:
        """The number of rows of each file that matches as a whole, or else the task that must be read."""
        for task in self.tasks():
            rows = task.file.record_count
            is_known = rows > 0 and isinstance(task.residual, AlwaysTrue) and not task.delete_files
            yield (rows, ()) if is_known else (0, (task,))

    def residual(self, file: DataFile) -> BooleanExpression:
        """The residual filter for the rows of a file."""
        found = self._residuals.get(file.spec_id)
        if found is None:
            asked = self._asked
            found = Residuals(asked.metadata.spec_by_id(file.spec_id), asked.schema, asked.row_filter)
            self._residuals[file.spec_id] = found
        return found.of(file.partition)

    def _listing(self, *, statistics: bool = False) -> ScanListing:
        if isinstance(self._asked.row_filter, AlwaysFalse):
            return ScanListing(iter(()))
        return self._service.plan(replace(self._asked, statistics=statistics))


def _refuse_again(files: Iterable[DataFile], seen: set[str]) -> None:
    """Record the locations of files. Raises ``InvalidMetadata`` for a location that occurs twice."""
    for each in files:
        if each.file_path in seen:
            location = without_userinfo(each.file_path)[:300]
            reason = "twice in one plan, and its rows would be read twice"
            raise InvalidMetadata(f"the service lists {location} {reason}", location=location)
        seen.add(each.file_path)


class ServedFiles(TaskRows):
    """A part of a service's plan; each row is a task."""

    def __init__(self, scan: ServedScan, part: Sequence[tuple[DataFile, tuple[DataFile, ...]]]) -> None:
        self._scan, self._part = scan, part

    def __len__(self) -> int:
        return len(self._part)

    def tasks(self) -> Iterator[FileScanTask]:
        """One task for each file."""
        return (PlannedTask(self, row) for row in range(len(self)))

    def file(self, row: int) -> DataFile:
        """The data file."""
        return self._part[row][0]

    def residual(self, row: int) -> BooleanExpression:
        """The residual filter of the file."""
        return self._scan.residual(self.file(row))

    def delete_files(self, row: int) -> tuple[DataFile, ...]:
        """The delete files that apply."""
        return self._part[row][1]

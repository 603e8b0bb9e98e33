"""Scans that a service plans, with tasks from its lists of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import pyarrow as pa

from icefield.abc import ListedFile, ListedFiles, ScanListing, ScanPlanRequest, ScanService
from icefield.base.concurrency import lazy
from icefield.errors import InvalidArgument, InvalidMetadata
from icefield.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression
from icefield.manifest import DataFile
from icefield.metadata import TableMetadata
from icefield.scan.planning.planner import PlanReport
from icefield.scan.service.listed_files import ListedReader, invalid_listing
from icefield.scan.tasks import FileScanTask, PlannedTask, TaskRows
from icefield.schema import Schema
from icefield.storage import FileIO
from icefield.types import IcebergType, PrimitiveType


@dataclass(eq=False)
class ServedScan:
    """A scan that a service plans. The listed files are checked like the entries of manifests.

    The residual filter of a file is computed here, from its partition. The service decides which files are opened, but
    not which of their rows are returned.
    """

    _service: ScanService
    _asked: ScanPlanRequest
    _metadata: TableMetadata
    _io: FileIO
    _schema: Schema
    _identifier: tuple[str, ...]
    _projected: Schema
    _first: ScanListing | None = None

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
        schema_id = self._schema.schema_id
        report = PlanReport(self._io, self._identifier, asked.row_filter, self._metadata, schema_id, self._projected)
        return report.told(self._listed(report, statistics))

    def _listed(self, report: PlanReport, statistics: bool) -> Iterator[ServedFiles]:
        if isinstance(self._asked.row_filter, AlwaysFalse):
            return
        seen = set[str]()
        fields = self._fields() if statistics else {}
        if statistics:
            listing = self._listing(tuple(fields))
        else:
            listing, self._first = self._first or self._listing(), None
        types = dict(fields.values())
        reader = ListedReader(self._metadata, self._schema, self._asked.row_filter, types)
        with closing(listing.parts) as parts:  # type: ignore[type-var]
            for part in parts:
                _refuse_again(part.files, seen)
                yield ServedFiles(reader, part)
        report.files_planned = len(seen)
        report.tell(self._asked.snapshot_id)

    def counted(self) -> Iterator[tuple[int, tuple[FileScanTask, ...]]]:
        """The number of rows of each file that matches as a whole, or else the task that must be read."""
        for task in self.tasks():
            rows = task.file.record_count
            is_known = rows > 0 and isinstance(task.residual, AlwaysTrue) and not task.delete_files
            yield (rows, ()) if is_known else (0, (task,))

    def _listing(self, statistics: tuple[str, ...] = ()) -> ScanListing:
        if isinstance(self._asked.row_filter, AlwaysFalse):
            return ScanListing(iter(()))
        return self._service.plan(replace(self._asked, statistics=statistics))

    def _fields(self) -> dict[str, tuple[int, IcebergType]]:
        """The columns with statistics, by their unambiguous names."""
        schema = self._schema
        found = ((number, schema.find_type(number), schema.find_column_name(number)) for number in schema.field_ids)
        return {
            name: (number, kind)
            for number, kind, name in found
            if name is not None and isinstance(kind, PrimitiveType) and _means(schema, name, number)
        }


def _refuse_again(files: Sequence[ListedFile], seen: set[str]) -> None:
    """Record the locations of files. Raises ``InvalidMetadata`` for a location that occurs twice."""
    for each in files:
        if each.file_path in seen:
            raise invalid_listing(each, "twice in one plan, and its rows would be read twice")
        seen.add(each.file_path)


def _means(schema: Schema, name: str, number: int) -> bool:
    """Whether a dotted name refers to this column and to no other."""
    try:
        return schema.find_field(name).field_id == number
    except InvalidArgument:
        return False


class ServedFiles(TaskRows):
    """A part of a service's plan; each row is a task. ``DataFile`` objects are created when a task first needs one."""

    def __init__(self, reader: ListedReader, part: ListedFiles) -> None:
        self._reader, self._part = reader, part

    def __len__(self) -> int:
        return len(self._part.files)

    def tasks(self) -> Iterator[FileScanTask]:
        """One task for each file."""
        return (PlannedTask(self, row) for row in range(len(self)))

    def partition_array(self, spec_id: int, rows: Sequence[int]) -> pa.StructArray:
        """The partition tuples of some files of one spec, in columns."""
        return self._reader.partition_array(spec_id, [self.file(row).partition for row in rows])

    def file(self, row: int) -> DataFile:
        """The data file."""
        return self._files[row]

    def residual(self, row: int) -> BooleanExpression:
        """The residual filter of the file."""
        return self._reader.residual(self.file(row))

    def delete_files(self, row: int) -> tuple[DataFile, ...]:
        """The delete files that apply."""
        places = self._part.deletes[row]
        deletes = self._deletes if places else []
        wrong = next((place for place in places if not 0 <= place < len(deletes)), None)
        if wrong is not None:
            raise InvalidMetadata(f"the service names delete file {wrong} of a list of {len(deletes)}")
        return tuple(deletes[place] for place in places)

    @lazy
    def _files(self) -> list[DataFile]:
        # All files at once: callers need most of them, and single conversions are several times slower.
        return self._reader.data_files(self._part.files)

    @lazy
    def _deletes(self) -> list[DataFile]:
        return self._reader.delete_files(self._part.delete_files)

"""Scans that a service plans, with tasks from its lists of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from icefield.abc import ListedFile, ListedFiles, ScanListing, ScanPlanRequest, ScanService
from icefield.base.concurrency import lazy
from icefield.errors import InvalidArgument, InvalidMetadata
from icefield.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression
from icefield.manifest import DataFile
from icefield.metadata import TableMetadata
from icefield.scan.listed_files import ListedReader, shown
from icefield.scan.planning import PlanReport
from icefield.scan.reading import read_tasks
from icefield.scan.tasks import FileScanTask, PlannedTask, ScanContext
from icefield.schema import Schema
from icefield.storage import FileIO
from icefield.types import IcebergType, PrimitiveType


class ServedScan:
    """A scan that a service plans. The listed files are checked like the entries of manifests.

    The residual filter of a file is computed here, from its partition. The service decides which files are opened, but
    not which of their rows are returned.
    """

    def __init__(
        self,
        service: ScanService,
        asked: ScanPlanRequest,
        metadata: TableMetadata,
        io: FileIO,
        schema: Schema,
        identifier: tuple[str, ...],
        projected: Schema,
    ) -> None:
        self._service, self._asked, self._metadata = service, asked, metadata
        self._io, self._schema, self._identifier, self._projected = io, schema, identifier, projected
        self._first: ScanListing | None = None

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
        report, seen = PlanReport(), set[str]()
        if isinstance(self._asked.row_filter, AlwaysFalse):
            return
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
        report.emit(
            self._io,
            self._identifier,
            self._asked.snapshot_id,
            self._asked.row_filter,
            self._metadata,
            self._schema.schema_id,
            self._projected,
        )

    def count(self, context: ScanContext, limit: int | None) -> int:
        """The number of rows, at most ``limit``. Files that match as a whole are counted without reading them."""
        counted = 0

        def opened() -> Iterator[FileScanTask]:
            nonlocal counted
            for task in self.tasks():
                if limit is not None and counted >= limit:
                    return
                rows = task.file.record_count
                if rows > 0 and isinstance(task.residual, AlwaysTrue) and not task.delete_files:
                    counted += rows
                else:
                    yield task

        bare = replace(context, projection=Schema(), dictionaries=frozenset())
        read: int = sum(batch.num_rows for batch in read_tasks(opened(), bare, limit))
        return counted + read if limit is None else min(counted + read, limit)

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
    paths = [each.file_path for each in files]
    if len(paths) == len(set(paths)) and seen.isdisjoint(paths):
        seen.update(paths)
        return
    for each in files:
        if each.file_path in seen:
            raise InvalidMetadata(
                f"the service lists {shown(each)} twice in one plan, and its rows would be read twice",
                location=shown(each),
            )
        seen.add(each.file_path)


def _means(schema: Schema, name: str, number: int) -> bool:
    """Whether a dotted name refers to this column and to no other."""
    try:
        return schema.find_field(name).field_id == number
    except InvalidArgument:
        return False


class ServedFiles:
    """A part of a service's plan; each row is a task. ``DataFile`` objects are created when a task first needs one."""

    __slots__ = ("_deletes", "_files", "_part", "_reader")

    def __init__(self, reader: ListedReader, part: ListedFiles) -> None:
        self._reader, self._part = reader, part
        self._files: list[DataFile] | None = None
        self._deletes: list[DataFile] | None = None

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
        files = self._files
        if files is None:
            # All files at once: callers need most of them, and single conversions are several times slower.
            files = self._files = self._reader.data_files(self._part.files)
        return files[row]

    def residual(self, row: int) -> BooleanExpression:
        """The residual filter of the file."""
        return self._reader.residual(self.file(row))

    def delete_files(self, row: int) -> tuple[DataFile, ...]:
        """The delete files that apply."""
        return tuple(self._delete_file(place) for place in self._part.deletes[row])

    def data_sequence_number(self, row: int) -> int | None:
        """None: a service does not state it."""
        return None

    def file_sequence_number(self, row: int) -> int | None:
        """None: a service does not state it."""
        return None

    def _delete_file(self, place: int) -> DataFile:
        if self._deletes is None:
            self._deletes = self._reader.delete_files(self._part.delete_files)
        if not 0 <= place < len(self._deletes):
            raise InvalidMetadata(f"the service names delete file {place} of a list of {len(self._deletes)}")
        return self._deletes[place]

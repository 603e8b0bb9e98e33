"""Scans that a service plans: its lists of files as tasks."""

# See docs/decisions/0185.

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from icefield.abc import ListedFile, ListedFiles, ScanAsked, ScanListing, ScanService
from icefield.errors import InvalidArgument, InvalidMetadata
from icefield.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, Residuals
from icefield.manifest import DataFile, DataFileContent
from icefield.metadata import TableMetadata
from icefield.partitioning import PartitionSpec
from icefield.scan.planning import PlanReport
from icefield.scan.reading import read_tasks
from icefield.scan.tasks import FileScanTask, PlannedTask, ScanContext
from icefield.schema import Schema
from icefield.secrets import without_userinfo
from icefield.storage import FileIO
from icefield.types import DoubleType, FloatType, IcebergType
from icefield.types.values import from_json

_CONTENTS: Final = {
    "data": DataFileContent.DATA,
    "position-deletes": DataFileContent.POSITION_DELETES,
    "equality-deletes": DataFileContent.EQUALITY_DELETES,
}
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class ServedScan:
    """One scan that a service plans. What it lists is checked as what a manifest lists is.

    What is left of the filter for a file follows from the file's partition and is found out here, so that a service
    decides which files are opened, and not which of their rows are given.
    """

    def __init__(
        self,
        service: ScanService,
        asked: ScanAsked,
        metadata: TableMetadata,
        io: FileIO,
        schema: Schema,
        identifier: tuple[str, ...],
        projected: Schema,
    ) -> None:
        self._service, self._asked, self._metadata = service, asked, metadata
        self._io, self._schema, self._identifier, self._projected = io, schema, identifier, projected
        self._first: ScanListing | None = None
        self._reader = _Reader(metadata, schema, asked.row_filter)

    @cached_property
    def io(self) -> FileIO:
        """What opens the files. Asks for the plan, which may state it."""
        self._first = self._listing()
        access = self._first.access
        return self._io.opened_by(access) if access else self._io

    def tasks(self) -> Iterator[FileScanTask]:
        """One task for each file. Raises ``InvalidMetadata`` for a list that cannot be."""
        report, seen = PlanReport(), set[str]()
        if isinstance(self._asked.row_filter, AlwaysFalse):
            return
        listing, self._first = self._first or self._listing(), None
        with closing(listing.parts) as parts:  # type: ignore[type-var]
            for part in parts:
                rows = ServedFiles(self._reader, part)
                for row, listed in enumerate(part.files):
                    if listed.file_path in seen:
                        raise InvalidMetadata(
                            f"the service lists {_shown(listed)} twice in one plan, and its rows would be read twice",
                            location=_shown(listed),
                        )
                    seen.add(listed.file_path)
                    yield PlannedTask(rows, row)
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
        """How many rows there are, at most ``limit``. Files that the filter takes whole are counted, not read."""
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

    def _listing(self) -> ScanListing:
        if isinstance(self._asked.row_filter, AlwaysFalse):
            return ScanListing(iter(()))
        return self._service.plan(self._asked)


class ServedFiles:
    """A part of a service's plan, of which tasks are rows. Objects are made when a task is asked for them."""

    __slots__ = ("_deletes", "_files", "_part", "_reader")

    def __init__(self, reader: _Reader, part: ListedFiles) -> None:
        self._reader, self._part = reader, part
        self._files: dict[int, DataFile] = {}
        self._deletes: dict[int, DataFile] = {}

    def file(self, row: int) -> DataFile:
        """The data file."""
        found = self._files.get(row)
        if found is None:
            found = self._files[row] = self._reader.data_file(self._part.files[row])
        return found

    def residual(self, row: int) -> BooleanExpression:
        """What is left of the filter."""
        return self._reader.residual(self.file(row))

    def delete_files(self, row: int) -> tuple[DataFile, ...]:
        """The delete files that apply."""
        return tuple(self._delete_file(place) for place in self._part.deletes[row])

    def data_sequence_number(self, row: int) -> int | None:
        """Nothing: a service does not say it."""
        return None

    def file_sequence_number(self, row: int) -> int | None:
        """Nothing: a service does not say it."""
        return None

    def _delete_file(self, place: int) -> DataFile:
        found = self._deletes.get(place)
        if found is None:
            known = self._part.delete_files
            if not 0 <= place < len(known):
                raise InvalidMetadata(f"the service names delete file {place} of a list of {len(known)}")
            found = self._deletes[place] = self._reader.delete_file(known[place])
        return found


class _Reader:
    """Reads what a service lists by the specs of a table."""

    def __init__(self, metadata: TableMetadata, schema: Schema, row_filter: BooleanExpression) -> None:
        schemas = list(metadata.schemas)
        self._filter = row_filter
        self._schema = schema
        self._specs: Mapping[int, PartitionSpec] = {spec.spec_id: spec for spec in metadata.partition_specs}
        self._types: Mapping[int, list[tuple[int, IcebergType]]] = {
            spec.spec_id: [(each.field_id, each.field_type) for each in spec.partition_type(schema, schemas).fields]
            for spec in metadata.partition_specs
        }
        self._residuals: dict[int, Residuals] = {}

    def data_file(self, listed: ListedFile) -> DataFile:
        """A data file. Raises ``InvalidMetadata``."""
        made = self._file(listed)
        if made.content is not DataFileContent.DATA:
            raise InvalidMetadata(f"the service lists {_shown(listed)} as a file of rows, and as one of deletes")
        return made

    def delete_file(self, listed: ListedFile) -> DataFile:
        """A delete file. Raises ``InvalidMetadata``."""
        made = self._file(listed)
        if made.content is DataFileContent.DATA:
            raise InvalidMetadata(f"the service lists {_shown(listed)}, a file of rows, as one of deletes")
        return made

    def residual(self, file: DataFile) -> BooleanExpression:
        """What a file's rows are still to be filtered by."""
        if isinstance(self._filter, AlwaysTrue):
            return self._filter
        found = self._residuals.get(file.spec_id)
        if found is None:
            found = self._residuals[file.spec_id] = Residuals(self._specs[file.spec_id], self._schema, self._filter)
        return found.of(file.partition)

    def _file(self, listed: ListedFile) -> DataFile:
        content = _CONTENTS.get(listed.content)
        if content is None or listed.file_size_in_bytes < 0:
            raise InvalidMetadata(
                f"the service lists {_shown(listed)} as '{listed.content[:40]}' of {listed.file_size_in_bytes} bytes, "
                "which cannot be",
                location=_shown(listed),
            )
        return DataFile(
            file_path=listed.file_path,
            file_format=listed.file_format.lower(),
            record_count=listed.record_count,
            file_size_in_bytes=listed.file_size_in_bytes,
            partition=self._partition(listed),
            spec_id=listed.spec_id,
            content=content,
            split_offsets=listed.split_offsets,
            equality_ids=listed.equality_ids,
            sort_order_id=listed.sort_order_id,
            first_row_id=listed.first_row_id,
            referenced_data_file=listed.referenced_data_file,
            content_offset=listed.content_offset,
            content_size_in_bytes=listed.content_size_in_bytes,
        )

    def _partition(self, listed: ListedFile) -> tuple[Any, ...]:
        types = self._types.get(listed.spec_id)
        if types is None:
            raise InvalidMetadata(
                f"the service lists {_shown(listed)} with partition spec {listed.spec_id}, which the table has not",
                location=_shown(listed),
            )
        given = listed.partition
        values = [given.get(str(number)) for number, _ in types] if isinstance(given, dict) else given
        if len(values) != len(types):
            raise InvalidMetadata(
                f"the service lists {_shown(listed)} with {len(values)} partition values in place of {len(types)}",
                location=_shown(listed),
            )
        try:
            return tuple(_value(kind, value) for (_, kind), value in zip(types, values, strict=True))
        except InvalidArgument as error:
            raise InvalidMetadata(
                f"the service lists {_shown(listed)} with a partition that cannot be: {error.message}",
                location=_shown(listed),
            ) from error


def _value(kind: IcebergType, value: Any) -> Any:
    if isinstance(kind, FloatType | DoubleType) and isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]  # as Java writes them
    return from_json(kind, value)


def _shown(listed: ListedFile) -> str:
    return without_userinfo(listed.file_path)[:300]

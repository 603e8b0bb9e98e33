"""The parts of a scan: groups of scan tasks that workers of another engine read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from icefield.expressions import BooleanExpression
from icefield.scan import FileScanTask, ScanContext, read_tasks

from icefield_frames.selection import Selection, is_of_files, narrowed, with_columns

PLANNING: Final = re.compile(
    r"(uri|token|credential|oauth2-server-uri)$|urn:ietf:params:oauth:token-type:"
    r"|(lock|dynamodb|hive|iceberg\.hive|rest|header|ssl|gcp\.auth|encryption)\."
)
"""The properties that only the driver needs: it alone asks a metastore, a lock or a REST service."""

Columns = tuple[str, ...] | None


@dataclass(frozen=True, repr=False)
class ScanPart:
    """Some data files of a scan with their deletes. Picklable; it holds the access to files, and no other credential.

    ``context`` reads files with the columns of the scan, in the order of ``schema``.
    """

    context: ScanContext
    schema: pa.Schema
    tasks: tuple[FileScanTask, ...]

    @property
    def nbytes(self) -> int:
        """The bytes of the files to read."""
        return sum(task.length for task in self.tasks)

    @property
    def files(self) -> list[str]:
        """The locations of the data files."""
        return [task.file.file_path for task in self.tasks]

    def read(self, columns: Columns = None) -> Iterator[pa.RecordBatch]:
        """The rows, with some columns in their order. A worker runs a task for each core, so one thread reads."""
        return read_tasks(self.tasks, narrowed(self.context, columns), workers=1)

    def table(self, columns: Columns = None) -> pa.Table:
        """The rows as one table."""
        kept = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches(list(self.read(columns)), kept).unify_dictionaries()

    def __repr__(self) -> str:  # engines print the arguments of tasks, and the context has properties of the catalog
        return f"ScanPart({len(self.tasks)} files)"


@dataclass(frozen=True, repr=False)
class WholePart:
    """A scan that cannot be divided, such as a scan with a limit or of changes. Picklable."""

    scan: Any
    schema: pa.Schema

    nbytes = 0
    files = ()

    def read(self, columns: Columns = None) -> Iterator[pa.RecordBatch]:
        """The rows, with some columns in their order."""
        return Selection(self.scan, columns).read()

    def table(self, columns: Columns = None) -> pa.Table:
        """The rows as one table."""
        found = self.scan.to_arrow()
        return found if columns is None else found.select(columns)

    def __repr__(self) -> str:
        return "WholePart()"


Part = ScanPart | WholePart


def parts_of(
    scan: Any, schema: pa.Schema, row_filter: BooleanExpression | None = None, at_least: int = 1
) -> list[Part]:
    """The parts of a scan, at least so many if the files are large enough; none if no file can hold rows.

    ``row_filter``: a further filter that leaves out files and rows.
    """
    if not is_of_files(scan) or scan.limit is not None:
        return [WholePart(replace(scan, io=scan.io.for_workers(PLANNING)), schema)]
    selection = Selection(scan, None, row_filter)
    context = for_workers(selection.context)
    return [ScanPart(context, schema, tasks) for tasks in selection.tasks(at_least)]


def for_workers(context: ScanContext) -> ScanContext:
    """The context for reading in another process, whose tasks read each delete file once."""
    return replace(context, io=context.io.for_workers(PLANNING), scan_id=uuid4().hex)


def used_columns(names: list[str] | None, filtered: set[str], schema: pa.Schema) -> Columns:
    """The columns to read for chosen columns and a filter; None for all."""
    return None if names is None else with_columns(names, filtered, schema.names)

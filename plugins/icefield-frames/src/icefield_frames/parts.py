"""The parts of a scan: groups of scan tasks that workers of another engine read.

The driver plans: workers have no access to a metastore, a REST service or a key service.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from icefield.expressions import AlwaysTrue, BooleanExpression
from icefield.scan import ChangelogContext, ChangelogScanTask, FileScanTask, ScanContext, read_changes, read_tasks

from icefield_frames.selection import Selection, first_rows, is_of_files, narrowed, with_columns

PLANNING: Final = re.compile(
    r"(uri|token|credential|oauth2-server-uri)$|urn:ietf:params:oauth:token-type:"
    r"|(lock|dynamodb|hive|iceberg\.hive|rest|header|ssl|gcp\.auth|encryption)\."
)
"""The properties that only the driver needs: it alone asks a metastore, a lock or a REST service."""

Columns = tuple[str, ...] | None


@dataclass(frozen=True, repr=False)
class ScanPart:
    """Some data files of a scan with their deletes. Picklable; it holds the access to files, and no other credential.

    ``context`` reads files with the columns of the scan, in the order of ``schema``. ``limit``: the maximum number of
    rows, of a scan with a limit, which has one part.
    """

    context: ScanContext
    schema: pa.Schema
    tasks: tuple[FileScanTask, ...]
    limit: int | None = None

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
        return read_tasks(self.tasks, narrowed(self.context, columns), self.limit, workers=1)

    def table(self, columns: Columns = None) -> pa.Table:
        """The rows as one table."""
        kept = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches(list(self.read(columns)), kept).unify_dictionaries()

    def __repr__(self) -> str:  # engines print the arguments of tasks, and the context has properties of the catalog
        return f"ScanPart({len(self.tasks)} files)"


@dataclass(frozen=True, repr=False)
class ChangesPart:
    """The changes of a scan of changes, which are in the order of their snapshots. Picklable, as ``ScanPart``."""

    context: ChangelogContext
    schema: pa.Schema
    tasks: tuple[ChangelogScanTask, ...]
    limit: int | None = None

    nbytes = 0
    files = ()

    def read(self, columns: Columns = None) -> Iterator[pa.RecordBatch]:
        """The rows, with some columns in their order."""
        batches = read_changes(self.tasks, self.context, workers=1)
        for batch in batches if self.limit is None else first_rows(batches, self.limit):
            yield batch if columns is None else batch.select(columns)

    def table(self, columns: Columns = None) -> pa.Table:
        """The rows as one table."""
        kept = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches(list(self.read(columns)), kept)

    def __repr__(self) -> str:
        return f"ChangesPart({len(self.tasks)} tasks)"


Part = ScanPart | ChangesPart


def parts_of(
    scan: Any, schema: pa.Schema, row_filter: BooleanExpression | None = None, at_least: int = 1
) -> list[Part]:
    """The parts of a scan, at least so many if the files are large enough; none if no file can hold rows.

    ``row_filter``: a further filter that leaves out files and rows.
    """
    if not is_of_files(scan):
        context = scan.changelog_context
        context = replace(context, scan=for_workers(context.scan))
        return [ChangesPart(context, schema, tuple(scan.plan_files()), scan.limit)]
    selection = Selection(scan, None, row_filter)
    context = for_workers(selection.context)
    if scan.limit is not None:
        tasks = tuple(_sufficient(selection.files(), scan.limit))
        return [ScanPart(context, schema, tasks, scan.limit)] if tasks else []
    return [ScanPart(context, schema, tasks) for tasks in selection.tasks(at_least)]


def _sufficient(tasks: Iterable[FileScanTask], rows: int) -> Iterator[FileScanTask]:
    """The first tasks that are sure to hold so many rows, or all of them."""
    for task in tasks:
        yield task
        if not task.delete_files and isinstance(task.residual, AlwaysTrue):
            rows -= max(0, task.file.record_count)
        if rows <= 0:
            return


def for_workers(context: ScanContext) -> ScanContext:
    """The context for reading in another process, whose tasks read each delete file once."""
    return replace(context, io=context.io.for_workers(PLANNING), scan_id=uuid4().hex)


def used_columns(names: list[str] | None, filtered: set[str], schema: pa.Schema) -> Columns:
    """The columns to read for chosen columns and a filter; None for all."""
    return None if names is None else with_columns(names, filtered, schema.names)

"""The row-level deletes of a head, and the scan tasks of its files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Lock
from typing import Any

from icefield import scan as scans
from icefield.base.concurrency import lazy
from icefield.expressions import AlwaysTrue
from icefield.manifest import SEQUENCE_NUMBER, ManifestContent, ManifestEntries
from icefield.scan import FileScanTask, ScanContext
from icefield.scan.deletes.index import DeleteIndex
from icefield.scan.deletes.store import DeleteStore
from icefield.scan.planning.planner import ScanPlanner
from icefield.scan.reading import TaskReader
from icefield.schema import Schema
from icefield.transaction.head.branch_head import Head


class HeadDeletes:
    """The row-level deletes of a head, read on first use, and each delete file once."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._readers: dict[Schema, TaskReader] = {}
        self._lock = Lock()

    @lazy
    def scan(self) -> ScanContext:
        """The scan context for all rows of the head."""
        return scans.TableScan(metadata=self._head.metadata, io=self._head.io).context

    @lazy
    def store(self) -> DeleteStore:
        """The store of the delete files that were read."""
        return DeleteStore(self.scan)

    def reader(self, columns: Schema) -> TaskReader:
        """The reader of some columns of the head's files, shared by all files that are read for an operation."""
        with self._lock:
            found = self._readers.get(columns)
            if found is None:
                found = self._readers[columns] = TaskReader(replace(self.scan, projection=columns), self.store)
        return found

    @lazy
    def _index(self) -> DeleteIndex | None:
        head, metadata = self._head, self._head.metadata
        if head.snapshot is None or not head.live(ManifestContent.DELETES):
            return None
        return ScanPlanner(metadata, head.io, head.snapshot, metadata.schema(), AlwaysTrue()).delete_index()

    def tasks(self, entries: ManifestEntries) -> Iterator[FileScanTask]:
        """A task for each data file, with the deletes that apply to it."""
        assigned = None if self._index is None else self._index.assign(entries)
        numbers = entries.column(SEQUENCE_NUMBER).to_pylist()
        for row, file in enumerate(entries.data_files()):
            deletes = () if assigned is None else assigned.files(row)
            yield FileScanTask(file, delete_files=deletes, data_sequence_number=numbers[row])


def file_key(head: Head, task: FileScanTask) -> tuple[Any, ...]:
    """Everything that affects a file's result: row ids, deletes, schema, spec and format version."""
    deletes = tuple((file.file_path, file.content_offset) for file in task.delete_files)
    file, metadata = task.file, head.metadata
    version = metadata.format_version
    return file.file_path, file.first_row_id, deletes, metadata.current_schema_id, metadata.default_spec_id, version


def keeps_lineage(task: FileScanTask) -> bool:
    """Whether the rows of a file have ids, which they keep in another file."""
    return task.file.first_row_id is not None

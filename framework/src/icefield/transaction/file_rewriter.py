"""Writing files anew without some of their rows: copy-on-write."""

# See docs/decisions/0042.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import UnsupportedFeature
from icefield.expressions import BooleanExpression, evaluate, field_ids
from icefield.manifest.data_file import DataFile
from icefield.manifest.entries import ManifestEntries
from icefield.manifest.manifest_file import ManifestContent
from icefield.manifest.schemas import SEQUENCE_NUMBER
from icefield.metadata.properties import COPY_ON_WRITE, DELETE_MODE, Property, get_str
from icefield.scan import FileScanTask, ScanContext, TableScan
from icefield.scan.delete_index import DELETE_STATISTICS, DeleteIndex
from icefield.scan.deletes.store import DeleteStore
from icefield.scan.reading import read_task
from icefield.schema.row_lineage import with_lineage
from icefield.transaction.action import ActionContext
from icefield.transaction.branch_head import Head
from icefield.transaction.conflicts import delete_index
from icefield.transaction.filtering import Matches
from icefield.writing.context import WriteContext
from icefield.writing.data_writer import write_batches


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What became of a file: whether any of its rows match, and the files that hold those that do not."""

    matched: bool
    files: tuple[DataFile, ...] = ()


class FileRewriter:
    """Rewrites files without the rows that match a filter, each once, however often its action is applied.

    A row for which the filter is unknown (null) stays.
    """

    def __init__(self) -> None:
        self._made: dict[Any, Rewritten] = {}
        self._used: set[Any] = set()
        self._uuid = str(uuid4())

    def begin(self, head: Head) -> None:
        """Begin an attempt on a head."""
        self._head = head
        self._deletes = DeletesOfHead(head)
        self._used.clear()

    def finish(self, context: ActionContext) -> None:
        """End an attempt: what it did not use is retired."""
        for key, rewritten in self._made.items():
            note = context.written.add if key in self._used else context.written.retire
            note(*(file.file_path for file in rewritten.files))

    def without(self, matches: Matches, row_filter: BooleanExpression, context: ActionContext) -> list[Rewritten]:
        """What becomes of each file of which some rows may match, in the order of the manifest."""
        result = []
        for task in self._deletes.tasks(matches.entries.filter(matches.some)):
            key = file_key(self._head, task)
            self._used.add(key)
            if key not in self._made:
                self._made[key] = self._rewrite(task, row_filter, context)
            result.append(self._made[key])
        return result

    def _rewrite(self, task: FileScanTask, row_filter: BooleanExpression, context: ActionContext) -> Rewritten:
        metadata = self._head.metadata
        scan, deletes = self._deletes.scan, self._deletes.store
        if not _any_row(task, scan, row_filter, deletes):
            return Rewritten(False)
        check_copies_on_write(self._head, DELETE_MODE)
        writing = WriteContext.from_metadata(metadata, context.io, operation_id=self._uuid)
        if keeps_lineage(task):
            writing, scan = writing.with_row_lineage(), replace(scan, projection=with_lineage(scan.projection))
        kept = _kept(task, scan, row_filter, deletes)
        files = write_batches(writing, kept, task_id=len(self._made), note=context.written.add)
        return Rewritten(True, tuple(files))


def check_copies_on_write(head: Head, mode: Property) -> None:
    """Refuse to rewrite a file where the table wants its rows marked as deleted beside it."""
    if get_str(head.metadata.properties, mode).lower() != COPY_ON_WRITE:
        raise UnsupportedFeature(
            f"the table property '{mode.name}' asks for row-level deletes in files of their own (merge-on-read), which "
            f"this version does not write: set it to '{COPY_ON_WRITE}' to let the files that hold such rows be "
            "rewritten. Nothing was changed; whole files are dropped either way",
            property=mode.name,
        )


def keeps_lineage(task: FileScanTask) -> bool:
    """Whether the rows of a file have ids, which go with them into another file."""
    return task.file.first_row_id is not None


def file_key(head: Head, task: FileScanTask) -> tuple[Any, ...]:
    """What makes a rewritten file another one: the file, its row ids, the deletes for it, the schema and the spec."""
    deletes = tuple((file.file_path, file.content_offset) for file in task.delete_files)
    file = task.file
    return file.file_path, file.first_row_id, deletes, head.metadata.current_schema_id, head.metadata.default_spec_id


class DeletesOfHead:
    """The row-level deletes of a head, read when they are first needed, and each delete file once."""

    def __init__(self, head: Head) -> None:
        self._head = head

    @cached_property
    def scan(self) -> ScanContext:
        """What all rows of the head are read with."""
        return TableScan(metadata=self._head.metadata, io=self._head.io).context

    @cached_property
    def store(self) -> DeleteStore:
        """What was read of delete files."""
        return DeleteStore(self.scan)

    @cached_property
    def _index(self) -> DeleteIndex | None:
        head = self._head
        manifests = [manifest for _, manifest in head.live(ManifestContent.DELETES)]
        if not manifests:
            return None
        parts = head.read(manifests, statistics=DELETE_STATISTICS)
        return delete_index(head, [part.filter(part.live()) for part in parts])

    def tasks(self, entries: ManifestEntries) -> Iterator[FileScanTask]:
        """A task for each data file, with the deletes that apply to it."""
        assigned = None if self._index is None else self._index.assign(entries)
        numbers = entries.column(SEQUENCE_NUMBER).to_pylist()
        for row, file in enumerate(entries.data_files()):
            deletes = () if assigned is None else assigned.files(row)
            yield FileScanTask(file, delete_files=deletes, data_sequence_number=numbers[row])


def _any_row(task: FileScanTask, scan: ScanContext, row_filter: BooleanExpression, deletes: DeleteStore) -> bool:
    """Whether any row matches: most files that only may match do not, and reading a column or two tells."""
    narrow = replace(scan, projection=scan.schema.select_ids(field_ids(row_filter)))
    filtered = FileScanTask(task.file, residual=row_filter, delete_files=task.delete_files)
    return any(batch.num_rows for batch in read_task(filtered, narrow, deletes))


def _kept(
    task: FileScanTask, scan: ScanContext, row_filter: BooleanExpression, deletes: DeleteStore
) -> Iterator[pa.RecordBatch]:
    for batch in read_task(task, scan, deletes):
        yield batch.filter(pc.invert(evaluate(row_filter, batch)))

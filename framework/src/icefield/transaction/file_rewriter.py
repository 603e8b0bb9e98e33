"""Writing files anew without some of their rows: copy-on-write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from icefield.expressions import BooleanExpression, evaluate, field_ids
from icefield.manifest.data_file import DataFile
from icefield.manifest.manifest_file import ManifestContent
from icefield.scan import FileScanTask, ScanContext, TableScan
from icefield.scan.delete_index import DELETE_STATISTICS, DeleteIndex
from icefield.scan.reading import read_task
from icefield.transaction.action import ActionContext
from icefield.transaction.conflicts import delete_index
from icefield.transaction.filtering import Matches
from icefield.transaction.head import Head
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

    def begin(self) -> None:
        """Begin an attempt."""
        self._used.clear()

    def finish(self, context: ActionContext) -> None:
        """End an attempt: what it did not use is retired."""
        for key, rewritten in self._made.items():
            note = context.written.add if key in self._used else context.written.retire
            note(*(file.file_path for file in rewritten.files))

    def without(
        self, head: Head, matches: Matches, row_filter: BooleanExpression, context: ActionContext
    ) -> list[Rewritten]:
        """What becomes of each file of which some rows may match, in the order of the manifest."""
        entries = matches.entries.filter(matches.some)
        deletes = self._deletes(head)
        assigned = {} if deletes is None else deletes.assign(entries)
        result = []
        for row, file in enumerate(entries.data_files()):
            task = FileScanTask(file, delete_files=assigned.get(row, ()))
            # Other deletes, another schema or another spec make another file of it.
            key = (
                file.file_path,
                tuple((d.file_path, d.content_offset) for d in task.delete_files),
                head.metadata.current_schema_id,
                head.metadata.default_spec_id,
            )
            self._used.add(key)
            if key not in self._made:
                self._made[key] = self._rewrite(head, task, row_filter, context)
            result.append(self._made[key])
        return result

    def _deletes(self, head: Head) -> DeleteIndex | None:
        manifests = [manifest for _, manifest in head.live(ManifestContent.DELETES)]
        if not manifests:
            return None
        parts = [head.entries(manifest, statistics=DELETE_STATISTICS) for manifest in manifests]
        return delete_index(head, [part.filter(part.live()) for part in parts])

    def _rewrite(
        self, head: Head, task: FileScanTask, row_filter: BooleanExpression, context: ActionContext
    ) -> Rewritten:
        scan = TableScan(metadata=head.metadata, io=context.io).context
        if not _any_row(task, scan, row_filter):
            return Rewritten(False)
        writing = WriteContext.from_metadata(head.metadata, context.io, operation_id=self._uuid)
        files = write_batches(writing, _kept(task, scan, row_filter), task_id=len(self._made))
        context.written.add(*(file.file_path for file in files))
        return Rewritten(True, tuple(files))


def _any_row(task: FileScanTask, scan: ScanContext, row_filter: BooleanExpression) -> bool:
    """Whether any row matches: most files that only may match do not, and reading a column or two tells."""
    narrow = replace(scan, projection=scan.schema.select_ids(field_ids(row_filter)), row_filter=row_filter)
    filtered = FileScanTask(task.file, residual=row_filter, delete_files=task.delete_files)
    return any(batch.num_rows for batch in read_task(filtered, narrow))


def _kept(task: FileScanTask, scan: ScanContext, row_filter: BooleanExpression) -> Iterator[pa.RecordBatch]:
    for batch in read_task(task, scan):
        yield batch.filter(pc.invert(evaluate(row_filter, batch)))

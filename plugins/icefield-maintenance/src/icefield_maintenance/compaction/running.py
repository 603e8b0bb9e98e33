"""Writing the rows of a group of files into new ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

import pyarrow as pa
from icefield.abc import Attempt, AttemptFiles, Work
from icefield.engine import Conforming, FileSet, OrderedWriter, with_lineage
from icefield.manifest import DataFile
from icefield.partitioning import PartitionSpec
from icefield.scan import TableScan, read_tasks
from icefield.schema import schema_to_arrow
from icefield.writing import WriteContext

from icefield_maintenance.compaction.planning import FileGroup
from icefield_maintenance.compaction.policy import Sizes
from icefield_maintenance.compaction.result import RewrittenGroup
from icefield_maintenance.compaction.strategies import Ordering


@dataclass(frozen=True, slots=True)
class WrittenGroup:
    """A group and the files that hold its rows now."""

    group: FileGroup
    files: tuple[DataFile, ...]

    @property
    def result(self) -> RewrittenGroup:
        """The group's entry in the result."""
        return RewrittenGroup(
            partition=self.group.partition,
            rewritten_data_files=len(self.group.tasks),
            rewritten_bytes=self.group.nbytes,
            added_data_files=len(self.files),
            added_bytes=sum(file.file_size_in_bytes for file in self.files),
        )


class RewriteGroup(Work[FileGroup, tuple[DataFile, ...]]):
    """Reads a group of one version of a table, without deleted rows, and writes it in the order of a strategy.

    Rows keep their ids, and the sequence numbers of their last change.
    """

    def __init__(self, scan: TableScan, spec: PartitionSpec, sizes: Sizes, ordering: Ordering) -> None:
        self._reading, self._sizes, self._ordering = scan.context, sizes, ordering
        self._writing = WriteContext.from_metadata(
            scan.metadata, scan.io, spec=spec, sort_order_id=ordering.sort_order_id, operation_id=str(uuid4())
        )

    def do(self, item: FileGroup, attempt: Attempt) -> tuple[DataFile, ...]:
        """Write the new files of a group. An error leaves no file of the group."""
        writing = replace(self._writing, target_file_bytes=self._sizes.output(item.nbytes), workers=attempt.threads)
        reading = self._reading
        if any(task.file.first_row_id is not None for task in item.tasks):
            writing = writing.with_row_lineage()
            reading = replace(reading, projection=with_lineage(reading.schema))
        writer = OrderedWriter(FileSet(writing, attempt.item, attempt.number, attempt.note))
        schema = schema_to_arrow(reading.projection)
        try:
            batches = _conformed(writing, read_tasks(item.tasks, reading, workers=attempt.threads))
            for batch in self._ordering.rows(batches, schema, partial(self._columns, item, attempt)):
                writer.add(batch)
            return tuple(writer.close())
        except BaseException:
            writer.abandon()
            raise

    def files(self, result: tuple[DataFile, ...]) -> Iterable[str]:
        """The new files."""
        return [file.file_path for file in result]

    @property
    def traces(self) -> AttemptFiles:
        """Among the table's data."""
        return AttemptFiles(self._writing.io, self._writing.locations.data_folder, self._writing.operation_id)

    def _columns(self, group: FileGroup, attempt: Attempt, ids: Collection[int]) -> Iterator[pa.RecordBatch]:
        only = replace(self._reading, projection=self._reading.schema.select_ids(ids))
        return read_tasks(group.tasks, only, workers=attempt.threads)


def _conformed(writing: WriteContext, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    incoming: pa.Schema | None = None
    conforming: Conforming | None = None
    for batch in batches:
        if conforming is None or not batch.schema.equals(incoming, check_metadata=True):
            incoming, conforming = batch.schema, Conforming(writing.schema, batch.schema)
        yield conforming.apply(batch)

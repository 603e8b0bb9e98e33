"""Writing the rows of a group of files into new ones."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

import pyarrow as pa

from icefield.maintenance.compaction.planning import FileGroup
from icefield.maintenance.compaction.policy import Sizes
from icefield.maintenance.compaction.result import RewrittenGroup
from icefield.maintenance.compaction.strategies import Ordering
from icefield.manifest import DataFile
from icefield.partitioning import PartitionSpec
from icefield.scan import TableScan
from icefield.scan.reading import read_tasks
from icefield.schema import schema_to_arrow
from icefield.schema.row_lineage import with_lineage
from icefield.writing.conforming import Conforming
from icefield.writing.context import WriteContext
from icefield.writing.files import FileSet, Note
from icefield.writing.ordered_writer import OrderedWriter


@dataclass(frozen=True, slots=True)
class WrittenGroup:
    """A group and the files that hold its rows now."""

    group: FileGroup
    files: tuple[DataFile, ...]

    @property
    def result(self) -> RewrittenGroup:
        """What is said of it."""
        return RewrittenGroup(
            partition=self.group.partition,
            rewritten_data_files=len(self.group.tasks),
            rewritten_bytes=self.group.nbytes,
            added_data_files=len(self.files),
            added_bytes=sum(file.file_size_in_bytes for file in self.files),
        )


class GroupRunner:
    """Reads groups of one version of a table, without deleted rows, and writes them in the order of a strategy.

    Threads may share it.
    """

    def __init__(self, scan: TableScan, spec: PartitionSpec, sizes: Sizes, ordering: Ordering) -> None:
        self._scan, self._sizes, self._ordering = scan, sizes, ordering
        self._writing = WriteContext.from_metadata(
            scan.metadata, scan.io, spec=spec, sort_order_id=ordering.sort_order_id, operation_id=str(uuid4())
        )
        self._numbers = itertools.count(1)

    def run(self, group: FileGroup, note: Note) -> WrittenGroup:
        """Write a group. ``note`` is called with the location of each file before it is begun.

        Rows keep their ids and when they last changed. On an error no file of the group is left.
        """
        writing = replace(self._writing, target_file_bytes=self._sizes.output(group.nbytes))
        reading = self._scan.context
        if any(task.file.first_row_id is not None for task in group.tasks):
            writing = writing.with_row_lineage()
            reading = replace(reading, projection=with_lineage(reading.schema))
        writer = OrderedWriter(writing, FileSet(writing, next(self._numbers), 0, note))
        schema = schema_to_arrow(reading.projection)
        try:
            batches = _conformed(writing, read_tasks(group.tasks, reading))
            for batch in self._ordering.rows(batches, schema, partial(self._columns, group)):
                writer.add(batch)
            return WrittenGroup(group, tuple(writer.close()))
        except BaseException:
            writer.abandon()
            raise

    def _columns(self, group: FileGroup, ids: Collection[int]) -> Iterator[pa.RecordBatch]:
        reading = self._scan.context
        return read_tasks(group.tasks, replace(reading, projection=reading.schema.select_ids(ids)))


def _conformed(writing: WriteContext, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    incoming: pa.Schema | None = None
    conforming: Conforming | None = None
    for batch in batches:
        if conforming is None or not batch.schema.equals(incoming, check_metadata=True):
            incoming, conforming = batch.schema, Conforming(writing.schema, batch.schema)
        yield conforming.apply(batch)

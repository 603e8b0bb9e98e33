"""The data source for Daft. Imported when Daft is installed and used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from daft import Schema
from daft.io.source import DataSource, DataSourceTask
from daft.recordbatch import RecordBatch
from icefield.expressions import BooleanExpression
from icefield.scan import FileScanTask
from icefield.schema import schema_to_arrow

from icefield_frames.clean_files import path_if_clean, takes_clean_files
from icefield_frames.daft_filters import translated
from icefield_frames.parts import Part, ScanPart, for_workers, parts_of, used_columns
from icefield_frames.selection import Selection, arrow_schema, narrowed, translator_of


class ScanSource(DataSource):  # type: ignore[misc]  # Daft is not installed where types are checked
    """A scan as a data source: a task for each clean file, and for each part of the others."""

    def __init__(self, scan: Any) -> None:
        self._scan = scan
        self._arrow = arrow_schema(scan)
        self._schema = Schema.from_pyarrow_schema(self._arrow)

    @property
    def name(self) -> str:
        """The name of the scan in Daft's plans."""
        return f"Icefield({'.'.join(self._scan.identifier)})"

    @property
    def schema(self) -> Schema:
        """The columns of the scan."""
        return self._schema

    async def get_tasks(self, pushdowns: Any) -> AsyncIterator[DataSourceTask]:
        """The tasks of a query. Daft applies filters and limits to their rows."""
        for task in self._tasks(pushdowns):
            yield task

    def _tasks(self, pushdowns: Any) -> Iterator[DataSourceTask]:
        columns = used_columns(pushdowns.columns, pushdowns.filter_required_column_names(), self._arrow)
        row_filter = self._filter(pushdowns.filters)
        if not takes_clean_files(self._scan):
            for part in parts_of(self._scan, self._arrow, row_filter):
                yield PartTask(part, self._schema, columns)
            return
        selection = Selection(self._scan, None, row_filter)
        wanted = schema_to_arrow(narrowed(selection.context, columns).projection)
        rows = pushdowns.limit if pushdowns.filters is None else None
        reading = for_workers(selection.context)
        for task in selection.files():
            if rows is not None and rows <= 0:
                break
            path = path_if_clean(task, wanted, selection.context.io)
            if path is not None:
                yield self._native(path, task, pushdowns)
            else:
                yield PartTask(ScanPart(reading, self._arrow, (task,)), self._schema, columns)
            rows = None if rows is None or task.delete_files else rows - task.file.record_count

    def _native(self, path: str, task: FileScanTask, pushdowns: Any) -> DataSourceTask:
        """A task of Daft's own Parquet reader."""
        file = task.file
        return DataSourceTask.parquet(
            path=path,
            schema=self._schema,
            pushdowns=pushdowns,
            num_rows=file.record_count,
            size_bytes=file.file_size_in_bytes,
        )

    def _filter(self, predicate: Any) -> BooleanExpression | None:
        translator = None if predicate is None else translator_of(self._scan, nan_is_greatest=True)
        return None if translator is None else translated(predicate, translator).row_filter


class PartTask(DataSourceTask):  # type: ignore[misc]
    """A part of a scan, read by Icefield on a worker."""

    def __init__(self, part: Part, schema: Schema, columns: tuple[str, ...] | None) -> None:
        self._part, self._columns = part, columns
        self._schema = schema

    @property
    def schema(self) -> Schema:
        """The columns of the rows."""
        return self._schema

    async def read(self) -> AsyncIterator[RecordBatch]:
        """The rows in batches."""
        for batch in self._part.read(self._columns):
            yield RecordBatch.from_arrow_record_batches([batch], batch.schema)

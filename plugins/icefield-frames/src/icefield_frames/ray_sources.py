"""The data source and the data sink for Ray. Imported when Ray is installed and used."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

import pyarrow as pa
import ray
from icefield.writing import DataFile
from ray.data.block import BlockAccessor, BlockMetadata
from ray.data.datasource import Datasink, Datasource, ReadTask

from icefield_frames.arrow_filters import columns_of, translated
from icefield_frames.filters import Translated
from icefield_frames.parts import Columns, Part, parts_of, used_columns
from icefield_frames.selection import arrow_schema, translator_of
from icefield_frames.worker_writes import PartWriter

_BYTES_OF_A_WRITE: Final = 128 << 20
"""The rows of a write task have at least so many bytes, if there are as many: each task writes a file."""


class ScanDatasource(Datasource):  # type: ignore[misc]  # Ray is not installed where types are checked
    """A scan as a data source: a read task for each part."""

    def __init__(self, scan: Any) -> None:
        super().__init__()
        self._scan = scan
        self._schema = arrow_schema(scan)
        self._projection_map: dict[str, str] | None = None

    def get_name(self) -> str:
        """The name of the read tasks."""
        return "Icefield"

    def supports_projection_pushdown(self) -> bool:
        """Whether Ray may choose columns."""
        return True

    def supports_predicate_pushdown(self) -> bool:
        """Whether Ray may hand over filters."""
        return True

    def estimate_inmemory_data_size(self) -> int | None:
        """The bytes of the files. Ray makes more blocks for a larger size, and each costs its driver CPU time."""
        return sum(part.nbytes for part in self._parts(self._found(), 1)) or None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """The read tasks: at least ``parallelism`` if the files are large enough."""
        names = self._get_data_columns()
        schema = self._schema if names is None else pa.schema([self._schema.field(name) for name in names])
        found = self._found()
        shared = ray.put((names, self._predicate_expr, found))
        return [
            ReadTask(
                partial(_read, part, shared),
                BlockMetadata(num_rows=None, size_bytes=part.nbytes, input_files=list(part.files), exec_stats=None),
                schema=schema if names != [] else None,
                per_task_row_limit=per_task_row_limit,
            )
            for part in self._parts(found, parallelism)
        ]

    def _found(self) -> Translated | None:
        """The filter of Ray as a filter of the scan; None without one."""
        if self._predicate_expr is None:
            return None
        translator = translator_of(self._scan, nan_is_greatest=False)
        if translator is None:
            return Translated(None, False)
        return translated(self._predicate_expr.to_pyarrow(), translator)

    def _parts(self, found: Translated | None, at_least: int) -> list[Part]:
        return parts_of(self._scan, self._schema, None if found is None else found.row_filter, at_least)


def _read(part: Part, shared: Any) -> Iterator[pa.Table]:
    """The blocks of a part, on a worker. Arrow applies the filter if no filter of the scan stands for all of it."""
    names, predicate, found = ray.get(shared)
    rest = None if predicate is None or found.is_exact else predicate.to_pyarrow()
    needed = set() if rest is None else columns_of(rest)
    columns: Columns = None if needed is None else used_columns(names, needed, part.schema)
    if columns == ():
        columns = tuple(part.schema.names[:1])
    schema = part.schema if columns is None else pa.schema([part.schema.field(name) for name in columns])
    for batch in part.read(columns):
        block = pa.Table.from_batches([batch], schema)
        block = block if rest is None else block.filter(rest)
        if names is not None and list(columns or ()) != names:
            block = BlockAccessor.for_block(block).select(names)
        yield block


class PartSink(Datasink):  # type: ignore[misc]
    """Writes the blocks of each write task into data files. ``files`` are those of all tasks, once these are done."""

    def __init__(self, writer: PartWriter) -> None:
        self._writer = writer
        self.files: list[DataFile] = []

    def get_name(self) -> str:
        """The name of the write tasks."""
        return "Icefield"

    def on_write_start(self, schema: Any = None) -> None:
        """Refuse columns that do not fit, before a task runs."""
        if isinstance(schema, pa.Schema):
            self._writer.check(schema)

    def write(self, blocks: Iterable[Any], ctx: Any) -> bytes:
        """Write the blocks of a task, on a worker."""
        tables = (BlockAccessor.for_block(block).to_arrow() for block in blocks)
        return pickle.dumps(self._writer.write(batch for table in tables for batch in table.to_batches()))

    def on_write_complete(self, write_result: Any) -> None:
        """Take the files of all tasks."""
        self.files = [file for returned in write_result.write_returns for file in pickle.loads(returned)]

    @property
    def min_bytes_per_write(self) -> int:
        """The bytes that Ray collects for a write task."""
        return _BYTES_OF_A_WRITE

    def __getstate__(self) -> dict[str, Any]:
        return {"_writer": self._writer, "files": []}


def write(dataset: Any, writer: PartWriter) -> list[DataFile]:
    """Write a dataset by Ray's write tasks."""
    sink = PartSink(writer)
    dataset.write_datasink(sink)
    return sink.files

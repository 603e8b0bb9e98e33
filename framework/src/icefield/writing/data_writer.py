"""Writing rows into the data files of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.manifest import DataFile
from icefield.partitioning import PartitionSpec
from icefield.partitioning.spec import check_partition_values, partition_batch
from icefield.partitioning.tuples import tuple_keys
from icefield.schema import Schema
from icefield.types.values import from_arrow_array
from icefield.writing.conforming import Conforming
from icefield.writing.context import WriteContext
from icefield.writing.fan_out import FanOut, threads_for
from icefield.writing.files import FileSet

_CHUNK_BYTES = 128 << 20
_CHUNK_ROWS = 8 << 20
_MOST_PARALLEL_FILES = 8


class Partitioner:
    """Computes the partitions of batches by one spec."""

    def __init__(self, spec: PartitionSpec, schema: Schema) -> None:
        self._spec = spec
        self._schema = schema
        self._type = spec.partition_type(schema)

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[Any, ...], pa.Array | None]]:
        """The partitions of a batch that is not empty: the values of each, and its row indices, ascending.

        None stands for all rows. The order of the partitions is the order of their keys, not of their values.
        """
        values = partition_batch(self._spec, self._schema, batch)
        check_partition_values(self._spec, values)
        keys, size = tuple_keys(values)
        if size == 1:
            yield from_arrow_array(self._type, values.slice(0, 1))[0], None
            return
        order = np.argsort(keys, kind="stable")
        ends = np.cumsum(np.bincount(keys, minlength=size))
        starts = np.concatenate(([0], ends[:-1]))
        present = starts < ends
        starts, ends = starts[present], ends[present]
        rows = pa.array(order)
        found = from_arrow_array(self._type, values.take(rows.take(pa.array(starts))))
        for tuple_, start, end in zip(found, starts.tolist(), ends.tolist(), strict=True):
            yield tuple_, rows.slice(start, end - start)


def write_batches(
    context: WriteContext,
    batches: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch],
    *,
    task_id: int = 0,
    attempt: int = 0,
    note: Callable[[str], None] | None = None,
) -> list[DataFile]:
    """Write rows into new data files and describe these; nothing is committed.

    ``batches`` may be an endless stream: memory is bounded by ``context.buffer_bytes``. Rows are conformed to the
    table's schema by column name, partitioned, and rolled into files of about the target size. Within
    a partition they keep their order. ``task_id`` and ``attempt`` go into the files' names. ``note`` is called, by any
    thread, with the location of each file before it is begun: the caller knows all locations even after an error.

    On an error every file of this call is aborted or deleted, and the error raised: ``InvalidArgument`` for rows
    that the table cannot hold, ``StorageError`` and its subclasses for files that cannot be written.
    """
    rows = conformed(batches, lambda incoming: Conforming(context.schema, incoming).apply)
    return write_conformed(rows, FileSet(context, task_id, attempt, note))


def write_conformed(batches: Iterable[pa.RecordBatch], files: FileSet) -> list[DataFile]:
    """Like ``write_batches``, for rows that ``Conforming`` has conformed to the schema of the files already."""
    context = files.context
    filled = (batch for batch in batches if batch.num_rows)
    with threads_for(files, context.io.workers(context.workers, waiting=True)) as threads:
        if not context.spec.is_unpartitioned:
            _write_partitioned(context, filled, FanOut(files, threads))
        else:
            # Rows in the table's sort order must not be dealt out to several files.
            parallel = 1
            if context.sort_order_id is None:
                parallel = min(_MOST_PARALLEL_FILES, context.workers or max(2, context.io.workers()))
            fan_out = FanOut(files, threads, parallel_files=parallel)
            for batch in filled:
                fan_out.add((None,) * len(context.spec.fields), batch)
            fan_out.close()
    return files.data_files()


def _write_partitioned(context: WriteContext, batches: Iterator[pa.RecordBatch], fan_out: FanOut) -> None:
    partitioner = Partitioner(context.spec, context.schema)
    with ThreadPoolExecutor(context.io.workers(context.workers), thread_name_prefix="icefield-take") as takers:
        for chunk, is_last in _chunks(batches, context.buffer_bytes):
            parts = list(partitioner.split(chunk))
            taken = takers.map(partial(taken_rows, chunk), [rows for _, rows in parts])
            for (values, _), rows in zip(parts, taken, strict=True):
                fan_out.add(values, rows, last=is_last)
    fan_out.close()


def taken_rows(batch: pa.RecordBatch, rows: pa.Array | None) -> pa.RecordBatch:
    """Some rows of a batch; None stands for all of them."""
    return batch if rows is None else pc.take(batch, rows, boundscheck=False)


def conformed(
    rows: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch],
    resolve: Callable[[pa.Schema], Callable[[pa.RecordBatch], pa.RecordBatch]],
) -> Iterator[pa.RecordBatch]:
    """Rows in conformed batches; ``resolve`` returns the function that conforms batches of an incoming schema."""
    incoming: pa.Schema | None = None
    for batch in pieces_of(rows):
        if incoming is None or not batch.schema.equals(incoming, check_metadata=True):
            incoming, conform = batch.schema, resolve(batch.schema)
        yield conform(batch)


def pieces_of(rows: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows in slices of at most a chunk each, so that a copy of one slice does not copy a whole batch."""
    if isinstance(rows, pa.Table):
        if rows.num_rows == 0:
            yield pa.RecordBatch.from_pylist([], schema=rows.schema)  # so that its schema is checked
        rows = rows.to_batches()
    for batch in [rows] if isinstance(rows, pa.RecordBatch) else rows:
        most = min(_CHUNK_ROWS, max(1, batch.num_rows * _CHUNK_BYTES // max(1, batch.nbytes)))
        if batch.num_rows <= most:
            yield batch
        else:
            yield from (batch.slice(start, most) for start in range(0, batch.num_rows, most))


def _chunks(batches: Iterator[pa.RecordBatch], buffer_bytes: int) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Combine batches, so that a partition gets few and large pieces; True with the last combined batch."""
    bound = max(1, min(_CHUNK_BYTES, buffer_bytes // 4))
    gathered: list[pa.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        if size >= bound or rows >= _CHUNK_ROWS:
            yield _joined(gathered), False
            gathered, size, rows = [], 0, 0
        gathered.append(batch)
        size += batch.nbytes
        rows += batch.num_rows
    if gathered:
        yield _joined(gathered), True


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)

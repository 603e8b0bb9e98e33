"""Writing rows into the data files of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefield.manifest import DataFile
from icefield.writing.conforming import Conforming
from icefield.writing.context import WriteContext
from icefield.writing.fan_out import FanOut
from icefield.writing.files import FileSet
from icefield.writing.partitioner import Partitioner
from icefield.writing.threads import Threads

_CHUNK_BYTES = 128 << 20
_CHUNK_ROWS = 8 << 20
_MOST_PARALLEL_FILES = 8


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
    return write_conformed(context, _conformed(context, batches), task_id=task_id, attempt=attempt, note=note)


def write_conformed(
    context: WriteContext,
    batches: Iterable[pa.RecordBatch],
    *,
    task_id: int = 0,
    attempt: int = 0,
    note: Callable[[str], None] | None = None,
    files: FileSet | None = None,
) -> list[DataFile]:
    """Like ``write_batches``, for rows that ``Conforming`` has conformed to the context's schema already.

    ``files`` is the set to write to; if it is given, ``task_id``, ``attempt`` and ``note`` are ignored.
    """
    filled = (batch for batch in batches if batch.num_rows)
    files = FileSet(context, task_id, attempt, note) if files is None else files
    threads = Threads(context.io.workers(context.workers, waiting=True))
    try:
        if context.spec.is_unpartitioned:
            _write_unpartitioned(context, filled, files, threads)
        else:
            _write_partitioned(context, filled, files, threads)
        threads.finish()
        return files.data_files()
    except BaseException:
        try:
            threads.cancel()
        finally:
            files.abandon()
        raise


def _write_unpartitioned(
    context: WriteContext, batches: Iterator[pa.RecordBatch], files: FileSet, threads: Threads
) -> None:
    # Rows in the table's sort order must not be dealt out to several files.
    parallel = 1
    if context.sort_order_id is None:
        parallel = min(_MOST_PARALLEL_FILES, context.workers or max(2, context.io.workers()))
    fan_out = FanOut(context, files, threads, parallel_files=parallel)
    values = (None,) * len(context.spec.fields)
    for batch in batches:
        fan_out.add(values, batch)
    fan_out.close()


def _write_partitioned(
    context: WriteContext, batches: Iterator[pa.RecordBatch], files: FileSet, threads: Threads
) -> None:
    partitioner = Partitioner(context.spec, context.schema)
    fan_out = FanOut(context, files, threads)
    with ThreadPoolExecutor(context.io.workers(context.workers), thread_name_prefix="icefield-take") as takers:
        for chunk, is_last in _chunks(batches, context.buffer_bytes):
            parts = list(partitioner.split(chunk))
            taken = takers.map(partial(_take, chunk), parts)
            for (values, _), rows in zip(parts, taken, strict=True):
                fan_out.add(values, rows, last=is_last)
    fan_out.close()


def _take(chunk: pa.RecordBatch, part: tuple[Any, pa.Array | None]) -> pa.RecordBatch:
    return chunk if part[1] is None else pc.take(chunk, part[1], boundscheck=False)


def _conformed(
    context: WriteContext, batches: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows under the table's schema, in batches that are never empty."""
    incoming: pa.Schema | None = None
    conforming: Conforming | None = None
    for batch in pieces_of(batches):
        if conforming is None or not batch.schema.equals(incoming, check_metadata=True):
            incoming, conforming = batch.schema, Conforming(context.schema, batch.schema)
        if batch.num_rows:
            yield conforming.apply(batch)


def pieces_of(rows: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows in batches of at most a chunk each."""
    if isinstance(rows, pa.Table):
        if rows.num_rows == 0:
            yield pa.RecordBatch.from_pylist([], schema=rows.schema)  # so that its schema is checked
        rows = rows.to_batches()
    for batch in [rows] if isinstance(rows, pa.RecordBatch) else rows:
        yield from _pieces(batch)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in slices of at most a chunk each, so that a copy of one slice does not copy the whole batch."""
    rows = min(_CHUNK_ROWS, max(1, batch.num_rows * _CHUNK_BYTES // max(1, batch.nbytes)))
    if batch.num_rows <= rows:
        yield batch
        return
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


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

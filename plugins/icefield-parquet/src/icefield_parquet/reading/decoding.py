"""Decoding of row groups to batches of exactly the requested types, with a check of every value.

pyarrow decodes columns in parallel on several threads, and waits for the slowest. Further work for each value (checks
of strings, expansion of dictionaries, duplicate keys of maps) is done for each column too: the thread that decoded a
column finishes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from icefield.toolkit import last_of_each_key, retype

from icefield_parquet.guard.soundness import check_values
from icefield_parquet.reading.repeated_strings import dictionary_arrays, spelled_out, without_dictionaries
from icefield_parquet.reading.threads import divided, thread_count

_WHOLE_BYTES: Final = 192 << 20
"""Row groups are decoded in one go, which is fastest, if the requested columns take no more than this."""

_SHARED_BYTES: Final = 4 << 20
"""Columns that take less than this are not divided among threads, which take time to start."""

_THREADED_BYTES: Final = 1 << 20
_THREADED_CHUNKS: Final = 32
"""pyarrow decodes fewer bytes in fewer column chunks without threads: starting them takes longer than the work."""


@dataclass(frozen=True, slots=True)
class DecodedColumns:
    """The columns to decode under a schema, and for each column the column chunks that hold it.

    ``files`` are pyarrow's readers of the file, at first a single one. Where several may read at once, ``open_file``
    opens more. ``entries`` are the known sizes of the dictionaries that pyarrow returns, by column chunk and row group.
    ``plain`` is the same request without dictionaries. ``fit`` returns fewer rows for a batch, and a larger size, if
    strings of some row groups may take more memory than estimated.
    """

    schema: pa.Schema
    chunks: Sequence[Sequence[int]]
    files: list[pq.ParquetFile]
    open_file: Callable[[], pq.ParquetFile] | None
    entries: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    plain: DecodedColumns | None = None
    fit: Callable[[list[int], int, int], tuple[int, int]] = lambda _, rows, size: (rows, size)

    @property
    def indices(self) -> list[int]:
        return [index for chunks in self.chunks for index in chunks]

    def check_dictionaries(self, columns: Sequence[pa.ChunkedArray], groups: Sequence[int]) -> None:
        """Raise ``_Merged`` where a dictionary has fewer values than its page: indices then select wrong values."""
        for column, chunks in zip(columns, self.chunks, strict=True):
            self.check_dictionary(column, chunks, groups)

    def check_dictionary(self, column: pa.ChunkedArray, chunks: Sequence[int], groups: Sequence[int]) -> None:
        """Like ``check_dictionaries``, for a single column."""
        known = [self.entries[index] for index in sorted(chunks) if index in self.entries]
        arrays = [dictionary_arrays(chunk) for chunk in column.chunks] if known else []
        for sizes, held in zip(known, zip(*arrays, strict=True), strict=False):
            size = sum(len(array.dictionary) for array in held)
            # If all lists are empty, pyarrow returns no dictionary for their elements.
            if any(map(len, held)) and size != sum(sizes[group] for group in groups):
                raise _Merged("a dictionary that holds a value twice")


class _Merged(pa.ArrowInvalid):  # type: ignore[misc]  # pyarrow has no types
    """pyarrow has merged equal values of a dictionary without changing the indices."""


def rows_at_once(rows: int, size: int, promised: int) -> int:
    """Return how many rows are decoded at once: all ``promised`` rows, or only ``rows`` if ``size`` is too large."""
    return rows if size > _WHOLE_BYTES else promised


def decode(wanted: DecodedColumns, groups: list[int], *, rows: int, size: int) -> Iterator[list[pa.Array]]:
    """Decode the columns of row groups in batches of at most ``rows`` rows.

    ``size`` is their approximate size in memory. Raises pyarrow's errors for damage.
    """
    decoded = _decoded(wanted, groups, rows, size)
    try:
        first = next(decoded, None)
    except _Merged:
        if wanted.plain is None:
            raise
        instead = [(wanted.plain, groups)]
    except pa.ArrowNotImplementedError:
        # pyarrow cannot concatenate lists with more than two GiB of strings.
        if len(groups) == 1:
            raise
        instead = [(wanted, [group]) for group in groups]
    else:
        if first is not None:
            yield first
            del first
            yield from decoded
        return
    # This is not in the handler above, since its exception keeps the discarded data alive.
    for other, some in instead:
        yield from decode(other, some, rows=rows, size=size)


def _decoded(wanted: DecodedColumns, groups: list[int], rows: int, size: int) -> Iterator[list[pa.Array]]:
    indices, schema, reader = wanted.indices, wanted.schema, wanted.files[0].reader
    rows, size = wanted.fit(groups, rows, size)
    takes_long = size >= _THREADED_BYTES or len(indices) * len(groups) >= _THREADED_CHUNKS
    in_threads = takes_long and len(indices) > 1 and thread_count() > 1
    if size > _WHOLE_BYTES:
        for batch in reader.iter_batches(rows, groups, column_indices=indices, use_threads=in_threads):
            wanted.check_dictionaries([pa.chunked_array([column]) for column in batch.columns], groups)
            for column in batch.columns:
                check_values(column)
            yield from _finished(batch, schema)
        return
    if in_threads and size >= _SHARED_BYTES and wanted.open_file is not None and any(map(_takes_time, schema.types)):
        columns = _apart(wanted, groups, wanted.open_file)
    else:
        table = reader.read_row_groups(groups, column_indices=indices, use_threads=in_threads)
        wanted.check_dictionaries(table.columns, groups)
        columns = [_column(held, field.type) for held, field in zip(table.columns, schema, strict=True)]
    done = all(finished for _, finished in columns)
    for batch in pa.Table.from_arrays([held for held, _ in columns], schema.names).to_batches(max_chunksize=rows):
        yield from [batch.columns] if done else _finished(batch, schema)


Column = tuple[pa.ChunkedArray, bool]
"""A decoded column, and whether it has its final form."""


def _takes_time(kind: pa.DataType) -> bool:
    """Whether the values of a type need further work after they are decoded."""
    kinds = pa.types
    return bool(kinds.is_nested(kind) or kinds.is_string(kind) or kinds.is_binary(kind) or kinds.is_dictionary(kind))


def _apart(wanted: DecodedColumns, groups: list[int], open_file: Callable[[], pq.ParquetFile]) -> list[Column]:
    """Columns that threads decode and finish one by one, each thread with a reader of its own."""
    files: SimpleQueue[pq.ParquetFile] = SimpleQueue()
    wanted.files.extend(open_file() for _ in range(thread_count() - len(wanted.files)))
    for file in wanted.files:
        files.put(file)

    def column(indices: Sequence[int], field: pa.Field) -> Column:
        file = files.get()
        try:
            table = file.reader.read_row_groups(groups, column_indices=list(indices), use_threads=False)
        finally:
            files.put(file)
        wanted.check_dictionary(table.column(0), indices, groups)
        return _column(table.column(0), field.type)

    return divided(column, zip(wanted.chunks, wanted.schema, strict=True))


def _column(held: pa.ChunkedArray, kind: pa.DataType) -> Column:
    for chunk in held.chunks:
        check_values(chunk)
    plain = without_dictionaries(held, kind)
    if plain is None:
        return held, False
    return pa.chunked_array([_conformed(chunk, kind) for chunk in plain], kind), True


def _finished(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[list[pa.Array]]:
    """The columns of a batch in exactly the types of the schema; in pieces where strings make it large."""
    for piece in spelled_out(batch, schema):
        yield [_conformed(column, field.type) for column, field in zip(piece.columns, schema, strict=True)]


def _conformed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert an array to exactly a type; a pruned list has lost its element's name and id.

    Of entries with the same key in a map, the last one is kept, as the format demands.
    """
    if pa.types.is_dictionary(kind):
        return column.dictionary_encode()
    return last_of_each_key(column if column.type.equals(kind, check_metadata=True) else retype(column, kind))

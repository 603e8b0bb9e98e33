"""Sorting more rows than fit into memory: sorted runs in temporary files, merged in blocks.

The merge holds one block of each run. Its bound is the least last row of the blocks that are not the last of their run.
All rows still in files come after the bound, so the held rows up to the bound are complete. For example, of the runs 1
3 | 7 and 2 5 | 6 the first blocks give 1 2 3, since 3 is the least last row; then 5 and the block 7 give 5, and so on.
A binary search finds the bound in the blocks of all runs at once, so that no row becomes a Python object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from icefield.engine import TemporaryBatches

SLICE_ROWS: Final = 1 << 18
"""How many sorted rows are gathered at a time."""

_MERGED: Final = 64
"""The most runs in one merge. More runs are merged in several steps."""

_BLOCKS: Final = 2 * _MERGED
"""The share of memory for a batch of a run: one batch of each run together takes half of the memory."""


@dataclass(frozen=True, slots=True)
class SortKeys:
    """The columns to sort rows by, and their directions; the same columns for all rows that are compared."""

    columns: pa.Table
    directions: Sequence[tuple[str, str]]

    def indices(self) -> pa.Array:
        """The row numbers in sorted order. The sort is stable."""
        columns = self.columns
        if columns.num_columns == 1 and columns.column(0).type == pa.uint64() and not columns.column(0).null_count:
            return pa.array(np.argsort(columns.column(0).to_numpy(), kind="stable"))
        return pc.sort_indices(columns, sort_keys=self.directions)


KeysOf = Callable[[pa.Table], SortKeys]


def sorted_rows(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, begin: Callable[[pa.Table | None], KeysOf], held_bytes: int
) -> Iterator[pa.RecordBatch]:
    """The rows of batches in the order of their keys. The sort is stable.

    At any time, memory holds about twice ``held_bytes``. ``begin`` returns the function that states the keys of rows.
    It receives all rows if they fit into ``held_bytes``, else None.
    """
    held: list[pa.RecordBatch] = []
    size = 0
    keys_of: KeysOf | None = None
    with TemporaryBatches(schema) as files:
        runs: list[int] = []
        for batch in batches:
            held.append(batch)
            size += batch.nbytes
            if size > held_bytes:
                keys_of = keys_of or begin(None)
                runs.append(_run(files, held, schema, keys_of, held_bytes))
                size = 0
        if keys_of is None:
            table = _table(held, schema)
            keys_of = begin(table)
            yield from _taken(table, keys_of(table).indices())
            return
        if held:
            runs.append(_run(files, held, schema, keys_of, held_bytes))
        while len(runs) > _MERGED:
            starts = range(0, len(runs), _MERGED)
            runs = [_merged_run(files, runs[start : start + _MERGED], keys_of, held_bytes) for start in starts]
        yield from _merged(files, runs, keys_of, held_bytes)


def _table(held: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The batches of a list as a table, in one chunk or in chunks of 2 GiB of strings. The list is emptied."""
    table = pa.Table.from_batches(held, schema).combine_chunks()
    held.clear()
    return table


def _taken(table: pa.Table, rows: pa.Array, slice_rows: int = SLICE_ROWS) -> Iterator[pa.RecordBatch]:
    """Rows of a table by their positions, one slice after another, to avoid a second copy of all rows."""
    for start in range(0, len(rows), slice_rows):
        yield from table.take(rows.slice(start, slice_rows)).combine_chunks().to_batches()


def _run(
    files: TemporaryBatches, held: list[pa.RecordBatch], schema: pa.Schema, keys_of: KeysOf, held_bytes: int
) -> int:
    """Sort the held batches into a new file, and empty the list."""
    table = _table(held, schema)
    # A merge holds at least one batch of each run.
    share = max(1, table.num_rows * held_bytes // (_BLOCKS * max(1, table.nbytes)))
    number = files.begin()
    for batch in _taken(table, keys_of(table).indices(), min(SLICE_ROWS, share)):
        files.write(number, batch)
    return number


def _merged_run(files: TemporaryBatches, runs: Sequence[int], keys_of: KeysOf, held_bytes: int) -> int:
    """Merge some runs into a new one."""
    number = files.begin()
    for batch in _merged(files, runs, keys_of, held_bytes):
        share = max(1, batch.num_rows * held_bytes // (_BLOCKS * max(1, batch.nbytes)))
        for start in range(0, batch.num_rows, share):
            files.write(number, batch.slice(start, share))
    return number


class _Run:
    """A run that is read a block at a time, with its held rows and their keys."""

    def __init__(self, files: TemporaryBatches, number: int, keys_of: KeysOf, block_bytes: int) -> None:
        self._left = files.end(number)
        self._batches = files.read(number)
        self._keys_of = keys_of
        self._block_bytes = block_bytes
        self.rows: pa.Table | None = None
        self.keys: SortKeys | None = None

    @property
    def goes_on(self) -> bool:
        """Whether more is in the file."""
        return self._left > 0

    def __len__(self) -> int:
        return 0 if self.rows is None else self.rows.num_rows

    def load(self) -> bool:
        """Hold a block unless one is held. False at the end of the run."""
        if len(self):
            return True
        block: list[pa.RecordBatch] = []
        size = 0
        while self._left and (not block or size + size // len(block) <= self._block_bytes):
            block.append(next(self._batches))
            size += block[-1].nbytes
            self._left -= 1
        if not block:
            next(self._batches, None)  # which deletes the file
            self.rows = None
            return False
        self.rows = pa.Table.from_batches(block)
        self.keys = self._keys_of(self.rows)
        return True

    def key(self, row: int) -> pa.Table:
        """The key of one row."""
        assert self.keys is not None
        return self.keys.columns.slice(row, 1)

    def take(self, count: int) -> tuple[pa.Table, pa.Table]:
        """Remove the first rows, and return them with their keys."""
        assert self.rows is not None
        assert self.keys is not None
        taken = self.rows.slice(0, count), self.keys.columns.slice(0, count)
        self.rows = self.rows.slice(count)
        self.keys = SortKeys(self.keys.columns.slice(count), self.keys.directions)
        return taken


def _merged(
    files: TemporaryBatches, numbers: Sequence[int], keys_of: KeysOf, held_bytes: int
) -> Iterator[pa.RecordBatch]:
    """The rows of some runs, merged. The runs are in the order of the input rows."""
    runs = [_Run(files, number, keys_of, held_bytes // (2 * len(numbers))) for number in numbers]
    while runs := [run for run in runs if run.load()]:
        assert runs[0].keys is not None
        directions = runs[0].keys.directions
        if len(runs) == 1:
            yield from runs[0].take(len(runs[0]))[0].to_batches()
            continue
        parts = [run.take(count) for run, count in zip(runs, _counts(runs, directions), strict=True) if count]
        rows = pa.concat_tables([rows for rows, _ in parts]).combine_chunks()
        keys = SortKeys(pa.concat_tables([keys for _, keys in parts]), directions)
        yield from _taken(rows, keys.indices())


def _counts(runs: Sequence[_Run], directions: Sequence[tuple[str, str]]) -> list[int]:
    """The number of rows of each block up to the bound."""
    open_ = [place for place, run in enumerate(runs) if run.goes_on]
    if not open_:
        return [len(run) for run in runs]
    lasts = SortKeys(_one_chunk([runs[place].key(len(runs[place]) - 1) for place in open_]), directions)
    bound = open_[lasts.indices()[0].as_py()]
    key = runs[bound].key(len(runs[bound]) - 1)
    low, high = np.zeros(len(runs), np.int64), np.array([len(run) for run in runs], np.int64)
    low[bound] = high[bound]
    while len(undecided := np.flatnonzero(low < high)):
        middle = (low + high) // 2
        # Equal rows of earlier runs come first: the bound is inserted behind the rows of the runs before its own.
        before = int(np.searchsorted(undecided, bound))
        tried = [
            runs[place].key(row) for place, row in zip(undecided.tolist(), middle[undecided].tolist(), strict=True)
        ]
        tried.insert(before, key)
        order = np.asarray(SortKeys(_one_chunk(tried), directions).indices())
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        goes: npt.NDArray[np.bool_] = np.delete(ranks, before) < ranks[before]
        low[undecided[goes]] = middle[undecided[goes]] + 1
        high[undecided[~goes]] = middle[undecided[~goes]]
    counts: list[int] = low.tolist()
    return counts


def _one_chunk(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).combine_chunks()

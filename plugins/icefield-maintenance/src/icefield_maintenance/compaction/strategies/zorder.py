"""Clustering by several columns at once: rows with near values in all columns are written near each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from icefield.engine import check_source, source_column
from icefield.errors import InvalidArgument
from icefield.toolkit import parse_transform

from icefield_maintenance.compaction.strategies.external_sort import KeysOf, SortKeys, sorted_rows
from icefield_maintenance.compaction.strategies.ordering import Ordering, OrderingRequest, ReadColumns
from icefield_maintenance.compaction.strategies.ranks import Ranks, Words, shortened

_KEY_BITS: Final = 64
_RANK_BITS: Final = 12
"""The most bits of a column: 4,096 ranks are more than the files that a filter can tell apart."""

_SAMPLE_ROWS: Final = 1 << 15
"""The most rows in the sample for ranks, eight for each rank. The sample of a larger group has at least about half."""


class ZOrder(Ordering):
    """Sorts the rows of a group along a z-curve through the ranks of some columns."""

    def __init__(self, request: OrderingRequest) -> None:
        """Raises ``InvalidArgument`` for columns that cannot be used for a z-curve."""
        self._schema, columns = request.metadata.schema(), request.zorder_columns
        self._held_bytes = request.held_bytes
        if not columns:
            raise InvalidArgument("zorder_columns name at least one column for the strategy zorder")
        if len(columns) > _KEY_BITS // 4 or len(set(columns)) < len(columns):
            raise InvalidArgument(f"zorder_columns are distinct, and at most {_KEY_BITS // 4}, not {list(columns)}")
        self._ids = [self._schema.find_field(column).field_id for column in columns]
        for number in self._ids:
            check_source(number, parse_transform("identity"), self._schema, "a z-order")
        self._bits = min(_RANK_BITS, _KEY_BITS // len(columns))

    def rows(
        self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, read_columns: ReadColumns
    ) -> Iterator[pa.RecordBatch]:
        """The rows along the curve. If they do not fit into memory, the curve's columns are read in an extra pass."""

        def begin(rows: pa.Table | None) -> KeysOf:
            return self._keys_of(read_columns(self._ids) if rows is None else rows.to_batches(max_chunksize=1 << 20))

        return sorted_rows(batches, schema, begin, self._held_bytes)

    def _keys_of(self, batches: Iterable[pa.RecordBatch]) -> KeysOf:
        # A group has no rows if all of its rows are deleted.
        sampled = sample(batches, self._columns) or [pa.array([], pa.int64())] * len(self._ids)
        ranks = [Ranks.of(column, self._bits) for column in sampled]
        spread = [spread_bits(place, len(ranks), self._bits) for place in range(len(ranks))]

        def keys_of(rows: pa.Table) -> SortKeys:
            curve = np.zeros(rows.num_rows, np.uint64)
            for column, each, table in zip(self._columns(rows), ranks, spread, strict=True):
                start = 0
                for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
                    curve[start : start + len(chunk)] |= table[each.find(chunk)]
                    start += len(chunk)
            return SortKeys(pa.table({"curve": curve}), [("curve", "ascending")])

        return keys_of

    def _columns(self, rows: pa.RecordBatch | pa.Table) -> list[pa.Array | pa.ChunkedArray]:
        return [source_column(self._schema, number, rows) for number in self._ids]


def sample(
    batches: Iterable[pa.RecordBatch], columns_of: Callable[[pa.RecordBatch], list[pa.Array]], most: int = _SAMPLE_ROWS
) -> list[pa.Array]:
    """Columns of a random sample of at most ``most`` rows. Each row has the same probability."""
    draw = np.random.default_rng(0)  # the same files for the same rows
    share = 1.0
    found: list[list[pa.Array]] = []
    numbers = np.zeros(0)
    for batch in batches:
        drawn = draw.random(batch.num_rows)
        chosen = drawn < share
        found.append([shortened(column.filter(pa.array(chosen))) for column in columns_of(batch)])
        numbers = np.concatenate((numbers, drawn[chosen]))
        while len(numbers) > most:
            share /= 2
            kept = numbers < share
            found = [[pa.concat_arrays(parts).filter(pa.array(kept)) for parts in zip(*found, strict=True)]]
            numbers = numbers[kept]
    return [pa.concat_arrays(parts) for parts in zip(*found, strict=True)]


def spread_bits(place: int, count: int, bits: int) -> Words:
    """A table that spreads each number of ``bits`` bits to its place in the key of ``count`` columns.

    The bits of the columns take turns, from the highest down: ``ab`` of the first and ``xy`` of the second of two
    columns become ``a0b0`` and ``0x0y``, and the key is ``axby``.
    """
    numbers = np.arange(1 << bits, dtype=np.uint64)
    spread = np.zeros(len(numbers), np.uint64)
    for bit in range(bits):
        spread |= ((numbers >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * count + count - 1 - place)
    return spread

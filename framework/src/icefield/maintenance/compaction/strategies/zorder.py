"""Clustering by several columns at once: rows that are near in all of them come near each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.maintenance.compaction.strategies.ordering import Ordering, taken
from icefield.maintenance.compaction.strategies.zorder_keys import Words, ordered_key
from icefield.metadata import TableMetadata
from icefield.partitioning.sources import check_source, source_column
from icefield.partitioning.transforms import IdentityTransform

_KEY_BITS: Final = 64
_PIECE: Final = 1 << 16
"""Rows whose bits are interleaved at a time, in the processor's cache."""


class ZOrder(Ordering):
    """Sorts the rows of a group in memory along a z-curve through some columns."""

    def __init__(self, metadata: TableMetadata, columns: Sequence[str]) -> None:
        self._schema = metadata.schema()
        if len(columns) > _KEY_BITS // 4 or len(set(columns)) < len(columns):
            raise InvalidArgument(f"zorder_columns are distinct, and at most {_KEY_BITS // 4}, not {list(columns)}")
        self._ids = [self._schema.find_field(column).field_id for column in columns]
        for number in self._ids:
            check_source(number, IdentityTransform(), self._schema, "a z-order")

    def rows(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows along the curve."""
        table = pa.Table.from_batches(batches, schema)
        keys = []
        for number in self._ids:
            column = source_column(self._schema, number, table)
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            keys.append(ordered_key(chunks))
        curve = interleaved([scaled(*key, _KEY_BITS // len(keys)) for key in keys], _KEY_BITS // len(keys))
        del keys
        return taken(table, pa.array(np.argsort(curve)))


def scaled(key: Words, valid: np.ndarray[tuple[int], np.dtype[np.bool_]] | None, bits: int) -> Words:
    """Keys spread over so many bits, 0 for null: what lies below the least value, and above the greatest, is cut off.

    For example keys 1000 to 1255 in 9 bits: 1000 is subtracted, which leaves 8 bits, and these become the highest of
    the 9; the lowest ones of larger keys are dropped.
    """
    present = key if valid is None else key[valid]
    if not len(present):
        return np.zeros(len(key), np.uint64)
    least, most = present.min(), present.max()
    width = int(most - least).bit_length()
    made: Words = key - least
    if width > bits:
        made >>= np.uint64(width - bits)
    elif width < bits:
        made <<= np.uint64(bits - width)
    if valid is not None and len(present) < len(key):
        # The smallest values share their key with null only where there is no room below them.
        np.maximum(made, np.uint64(1), out=made)
        made[~valid] = 0
    return made


def interleaved(keys: Sequence[Words], bits: int) -> Words:
    """One key of the bits of several, from the highest down, one of each in turn: ``ab`` and ``xy`` give ``axby``."""
    count = len(keys)
    if count == 1:
        return keys[0]
    spread = np.zeros(256, np.uint64)
    numbers = np.arange(256, dtype=np.uint64)
    for bit in range(8):
        if bit * count < _KEY_BITS:
            spread |= ((numbers >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * count)
    made = np.zeros(len(keys[0]), np.uint64)
    for start in range(0, len(made), _PIECE):
        piece = slice(start, start + _PIECE)
        for place, key in enumerate(keys):
            shift = count - 1 - place
            for low in range(0, bits, 8):
                octet = ((key[piece] >> np.uint64(low)) & np.uint64(0xFF)).astype(np.intp)
                made[piece] |= spread[octet] << np.uint64(low * count + shift)
    return made

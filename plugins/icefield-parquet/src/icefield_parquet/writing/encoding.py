"""The choice of columns with a dictionary, from a sample of the first rows of a file.

A dictionary of values that hardly repeat costs time and makes the file larger. The repetitions in a sample give an
estimate of the distinct values in a row group (as if each value were drawn at random from a fixed set). From it follow
the sizes with and without a dictionary. Clustered values repeat more often in the sample than overall. That favours a
dictionary, which is right for such values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LARGEST_SAMPLE = 16_384
_SMALLEST_SAMPLE = 512
_PART_OF_ROWS = 8
_PIECES = 16
_JITTER = np.random.default_rng(1).random(_PIECES)
_WORTHWHILE = 0.9
_FEW_ROWS = 256
"""With fewer rows a dictionary costs next to nothing, and a sample tells nothing about repetitions."""

_FILES_ALIKE = 64
"""The number of files of one write that share a choice before another file is sampled."""

_MOST_ROWS_AT_ONCE = 8_192
_USUAL_ROWS_AT_ONCE = 1_024

# The share of distinct values in a sample, if it has x times as many values as the set that it is drawn from.
_RATIOS = np.logspace(-7, 4, 600)
_DISTINCT = -np.expm1(-_RATIOS) / _RATIOS


class EncodingChoice:
    """How the files of one write are encoded. Threads may share it.

    Files with a similar number of rows are assumed to be alike: some files reuse the choice for an earlier one.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[dict[str, Any], int]] = {}

    def arguments(
        self, table: pa.Table, rows: int, paths: Sequence[str], limit: int, page_bytes: int
    ) -> dict[str, Any]:
        """Arguments for pyarrow's writer: the leaves that get a dictionary, and how many rows it encodes at once.

        ``table`` is the first rows of a file in storage form, ``rows`` the number of rows in a row group, ``paths`` the
        leaves in order, ``limit`` the largest dictionary in bytes.
        """
        if table.num_rows < _FEW_ROWS:
            return {"use_dictionary": True}
        size = rows.bit_length()
        found, uses = self._known.get(size, ({}, 0))
        if not uses:
            found, uses = choose_encoding(table, rows, paths, limit, page_bytes), _FILES_ALIKE
        self._known[size] = found, uses - 1
        return found


def choose_encoding(table: pa.Table, rows: int, paths: Sequence[str], limit: int, page_bytes: int) -> dict[str, Any]:
    """Arguments for pyarrow's writer, chosen from a sample of this table alone."""
    sample = _sample(table)
    scale = rows / sample.num_rows
    wanted, widest = [], 1.0
    for path, leaf in zip(paths, _leaves(sample), strict=True):
        width = leaf.nbytes / max(1, len(leaf))
        widest = max(widest, width * len(leaf) / sample.num_rows)
        if repeats(leaf, scale, width, limit):
            wanted.append(path)
    # pyarrow measures pages only between such steps, so the steps must be short where values are long.
    at_once = int(page_bytes / 8 / widest)
    return {
        "use_dictionary": wanted if len(wanted) < len(paths) else True,
        "write_batch_size": max(_USUAL_ROWS_AT_ONCE, min(_MOST_ROWS_AT_ONCE, at_once)),
    }


def repeats(leaf: pa.Array | pa.ChunkedArray, scale: float, width: float, limit: int) -> bool:
    """Whether a dictionary would make a column smaller. The column has ``scale`` times the values of ``leaf``."""
    if pa.types.is_boolean(leaf.type) or pa.types.is_null(leaf.type):
        return False
    seen = len(leaf) - leaf.null_count
    if seen == 0:
        return True
    distinct = pc.count_distinct(leaf).as_py()
    values = max(1.0, seen * scale)
    held = distinct_values(distinct, seen, values)
    coded = held * width + values * math.ceil(math.log2(held + 1)) / 8
    return held * width <= limit and coded < _WORTHWHILE * values * width


def distinct_values(distinct: int, seen: int, values: float) -> float:
    """Estimate the distinct values among ``values``, given ``distinct`` ones in a sample of ``seen``."""
    if distinct >= seen:
        return values
    ratio = float(np.interp(-distinct / seen, -_DISTINCT, _RATIOS))
    domain = seen / ratio
    return max(float(distinct), domain * -math.expm1(-values / domain))


def _sample(table: pa.Table) -> pa.RecordBatch:
    """Some rows from several places, at uneven distances because of periodic data."""
    count = min(table.num_rows, _LARGEST_SAMPLE, max(_SMALLEST_SAMPLE, table.num_rows // _PART_OF_ROWS))
    piece, step = count // _PIECES, table.num_rows // _PIECES
    if count == table.num_rows:
        pieces = [table]
    else:
        pieces = [table.slice(step * at + int((step - piece) * _JITTER[at]), piece) for at in range(_PIECES)]
    return pa.concat_tables(pieces).combine_chunks().to_batches()[0]


def _leaves(batch: pa.RecordBatch) -> Iterator[pa.Array]:
    for column in batch.columns:
        yield from _leaves_of(column)


def _leaves_of(array: pa.Array) -> Iterator[pa.Array]:
    """The values of each leaf, in the order of the file's columns."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_struct(kind):
        for child in array.flatten():
            yield from _leaves_of(child)
    elif pa.types.is_map(kind):
        yield from _leaves_of(array.keys)
        yield from _leaves_of(array.items)
    elif pa.types.is_list(kind):
        yield from _leaves_of(array.flatten())
    else:
        yield array

"""Rows told apart by partition: one small integer key a row, one stable sort, one take a partition.

The rows are never filtered once for each partition, so the cost does not grow with the number of partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefield.partitioning import PartitionSpec
from icefield.partitioning.spec import check_partition_values, partition_batch
from icefield.schema import Schema
from icefield.types.values import from_arrow_array

_SMALL = 1 << 16
"""NumPy sorts keys of 16 bits by counting, which is several times as fast as comparing."""

_LARGE = 1 << 31


class Partitioner:
    """Computes the partitions of batches by one spec."""

    def __init__(self, spec: PartitionSpec, schema: Schema) -> None:
        self._spec = spec
        self._schema = schema
        self._type = spec.partition_type(schema)

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[Any, ...], pa.Array | None]]:
        """The partitions of a batch that has rows: the values of each, and the rows that are in it, ascending.

        None stands for all rows. Partitions come in the order of the keys, which is that of no value.
        """
        values = partition_batch(self._spec, self._schema, batch)
        check_partition_values(self._spec, values)
        keys, size = _row_keys(values)
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


def _row_keys(values: pa.StructArray) -> tuple[npt.NDArray[Any], int]:
    """For each row a number below ``size`` that rows share when they are in one partition."""
    keys: npt.NDArray[Any] = np.zeros(len(values), np.int64)
    size = 1
    for position in range(values.type.num_fields):
        codes, distinct = _codes(values.field(position))
        if distinct == 1:
            continue
        if size * distinct >= _LARGE:
            keys, size = _codes(pa.array(keys))
        keys = keys * distinct + codes
        size *= distinct
    if size > max(_SMALL, 2 * len(values)):
        keys, size = _codes(pa.array(keys))
    return keys.astype(np.uint16 if size <= _SMALL else np.int64, copy=False), size


def _codes(column: pa.Array) -> tuple[npt.NDArray[np.int64], int]:
    """The distinct values of a column by number; null has a number of its own."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int64), 1
    if pa.types.is_floating(column.type):
        column = _float_bits(column)
    encoded = column.dictionary_encode()
    distinct = len(encoded.dictionary)
    if encoded.null_count == 0:
        return encoded.indices.to_numpy().astype(np.int64), distinct
    return pc.fill_null(encoded.indices, distinct).to_numpy().astype(np.int64), distinct + 1


def _float_bits(column: pa.Array) -> pa.Array:
    """The bits of floats, the same for every NaN: 0.0 and -0.0 are different partitions."""
    nan = pa.scalar(float("nan"), column.type)
    settled = pc.if_else(pc.fill_null(pc.is_nan(column), False), nan, column)
    return settled.view(pa.int32() if pa.types.is_float32(column.type) else pa.int64())

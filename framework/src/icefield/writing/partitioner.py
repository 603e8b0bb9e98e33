"""Splits rows by partition: one small integer key per row, one stable sort, one take per partition.

The rows are never filtered once for each partition, so the cost does not grow with the number of partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from icefield.partitioning import PartitionSpec
from icefield.partitioning.spec import check_partition_values, partition_batch
from icefield.partitioning.tuples import tuple_keys
from icefield.schema import Schema
from icefield.types.values import from_arrow_array


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

"""Keys that identify partitions across all specs of a table."""

from __future__ import annotations

from collections.abc import Hashable

import pyarrow as pa

from icefield.manifest.entries import partition_tuples, take
from icefield.partitioning.spec import normalised_key
from icefield.partitioning.tuples import Ints


def partition_keys(spec_id: int, partition: pa.StructArray, rows: Ints) -> list[tuple[Hashable, ...]]:
    """The table-wide partition keys of these rows: the spec id and the normalised tuple."""
    tuples = partition_tuples(take(partition, pa.array(rows)))
    return [(spec_id, *normalised_key(values)) for values in tuples]

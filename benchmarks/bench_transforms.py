"""Transforms over whole columns, against PyIceberg's Rust core; metrics against Arrow's own minimum and maximum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from harness import compare, main
from icefield.metadata.metrics import MetricsCollector
from icefield.partitioning.transforms import parse_transform
from icefield.types import (
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    UUIDType,
)
from pyiceberg_core import transform as core

ROWS = 1_000_000


def columns() -> dict[str, tuple[pa.Array, IcebergType]]:
    rng = np.random.default_rng(7)
    longs = rng.integers(-(2**60), 2**60, ROWS)
    micros = pa.array(rng.integers(-(10**16), 10**16, ROWS), pa.timestamp("us"))
    names = [f"user-{number}" for number in rng.integers(0, 10**6, ROWS)]
    urls = [f"https://example.com/items/{number}" for number in rng.integers(0, 10**9, ROWS)]
    few = pa.array([f"customer segment {i:04}" for i in range(1000)])
    return {
        "long": (pa.array(longs), LongType()),
        "int": (pa.array(longs.astype(np.int32)), IntegerType()),
        "string": (pa.array(names), StringType()),
        "long string": (pa.array(urls), StringType()),
        "repeated string": (few.take(pa.array(rng.integers(0, 1000, ROWS))), StringType()),
        "string with nulls": (pa.array(names, mask=rng.random(ROWS) < 0.1), StringType()),
        "uuid": (
            pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), ROWS, [None, pa.py_buffer(rng.bytes(16 * ROWS))]),
            UUIDType(),
        ),
        "decimal": (pa.array(longs).cast(pa.decimal128(19, 0)), DecimalType(19, 0)),
        "timestamp": (micros, TimestampType()),
        "date": (micros.cast(pa.date32(), safe=False), DateType()),
    }


WORKLOADS: list[tuple[str, str, Any, float | None]] = [
    ("bucket[16]", "long", lambda a: core.bucket(a, 16), 2.0),
    ("bucket[16]", "int", lambda a: core.bucket(a, 16), 2.0),
    ("bucket[16]", "string", lambda a: core.bucket(a, 16), 1.3),
    ("bucket[16]", "long string", lambda a: core.bucket(a, 16), 1.3),
    ("bucket[16]", "repeated string", lambda a: core.bucket(a, 16), 1.3),
    ("bucket[16]", "string with nulls", lambda a: core.bucket(a, 16), 1.3),
    ("bucket[16]", "uuid", lambda a: core.bucket(a, 16), 2.0),
    ("bucket[16]", "decimal", lambda a: core.bucket(a, 16), 1.0),
    ("bucket[16]", "timestamp", lambda a: core.bucket(a, 16), 2.0),
    ("truncate[10]", "long", lambda a: core.truncate(a, 10), 1.0),
    ("truncate[10]", "decimal", lambda a: core.truncate(a, 10), 1.0),
    ("truncate[5]", "string", lambda a: core.truncate(a, 5), 1.0),
    ("year", "timestamp", core.year, 1.0),
    ("month", "timestamp", core.month, 1.0),
    ("day", "timestamp", core.day, 1.0),
    ("hour", "timestamp", core.hour, 1.0),
    ("year", "date", core.year, 1.0),
]


def run() -> None:
    data = columns()
    for text, column, peer, floor in WORKLOADS:
        array, kind = data[column]
        transform = parse_transform(text)
        compare(
            f"{text} of {column}",
            lambda transform=transform, array=array, kind=kind: transform.apply(array, kind),
            lambda peer=peer, array=array: peer(array),
            floor=floor,
            rows=ROWS,
            runs=7,
        )
    for column in ("long", "string", "long string", "string with nulls", "uuid", "decimal"):
        array = data[column][0]
        schema = pa.schema([pa.field("x", array.type, metadata={"PARQUET:field_id": "1"})])
        batches = pa.Table.from_arrays([array], schema=schema).to_batches(max_chunksize=131_072)
        compare(
            f"metrics of {column} / min_max",
            lambda schema=schema, batches=batches: _collect(schema, batches),
            lambda batches=batches: [pc.min_max(batch.column(0)) for batch in batches],
            rows=ROWS,
        )


def _collect(schema: pa.Schema, batches: list[pa.RecordBatch]) -> Any:
    collector = MetricsCollector(schema)
    for batch in batches:
        collector.update(batch)
    return collector.metrics()


if __name__ == "__main__":
    main(run)

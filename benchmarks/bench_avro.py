"""Avro against fastavro: data files and manifests, read into Arrow columns here and into dicts there, and written.

    python benchmarks/bench_avro.py [--rows 200000] [--entries 1000]

Both read files that fastavro wrote, so that the layout of blocks helps neither of them.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import struct
from typing import Any

import fastavro
import pyarrow as pa
from harness import compare, main
from icefield.abc import ManifestReadRequest
from icefield.manifest.schemas import entry_schema
from icefield.schema import Schema
from icefield.toolkit import BytesInput
from icefield.types import (
    BooleanType,
    DateType,
    DoubleType,
    FixedType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)
from icefield_avro.avro_format import AvroFormat

FORMAT = AvroFormat()
STATISTICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
LOWER, UPPER = 125, 128


class Sink(io.BytesIO):
    """A file that is thrown away."""

    data = b""

    def close(self) -> None:
        self.data = self.getvalue()

    def abort(self) -> None:
        pass


def flat_schema(required: bool) -> Schema:
    kinds = {
        "id": LongType(),
        "count": IntegerType(),
        "ts": TimestampType(),
        "amount": DoubleType(),
        "flag": BooleanType(),
        "name": StringType(),
        "kind": StringType(),
        "day": DateType(),
    }
    return Schema(*(NestedField(i, name, kind, required) for i, (name, kind) in enumerate(kinds.items(), 1)))


def flat_rows(rows: int, nulls: float) -> list[dict[str, Any]]:
    rng = random.Random(2)
    out = []
    for i in range(rows):
        row = {
            "id": i,
            "count": rng.randint(-1000, 100_000),
            "ts": 1_700_000_000_000_000 + i * 1_000_003,
            "amount": rng.random() * 1000,
            "flag": rng.random() < 0.5,
            "name": f"name-{rng.randint(0, 10**7)}",
            "kind": rng.choice(("view", "click", "purchase", "ad")),
            "day": 19_000 + i % 1000,
        }
        out.append({k: None if nulls and rng.random() < nulls else v for k, v in row.items()})
    return out


NESTED = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "tags", ListType(3, StringType(), element_required=True)),
    NestedField(4, "vector", ListType(5, DoubleType(), element_required=True)),
    NestedField(6, "scores", MapType(7, StringType(), 8, LongType())),
    NestedField(9, "place", StructType(NestedField(10, "lat", DoubleType()), NestedField(11, "city", StringType()))),
    NestedField(12, "digest", FixedType(16)),
)


def nested_rows(rows: int) -> list[dict[str, Any]]:
    rng = random.Random(3)
    return [
        {
            "id": i,
            "tags": [rng.choice(("red", "green", "blue")) for _ in range(rng.randrange(5))],
            "vector": [rng.random() for _ in range(8)],
            "scores": {f"k{j}": rng.randrange(1000) for j in range(rng.randrange(4))},
            "place": None if i % 7 == 0 else {"lat": rng.random(), "city": f"city {i % 100}"},
            "digest": rng.randbytes(16),
        }
        for i in range(rows)
    ]


MANIFEST = entry_schema(2, StructType(NestedField(1000, "day", DateType()), NestedField(1001, "bucket", IntegerType())))


def entries(count: int, deletes: bool = False) -> list[dict[str, Any]]:
    """Return entries with statistics of 20 columns, or with ``deletes`` of position delete files, bounded by paths."""
    rng = random.Random(1)
    return [_entry(i, rng, deletes) for i in range(count)]


def _entry(i: int, rng: random.Random, deletes: bool) -> dict[str, Any]:
    path = f"s3://bucket/warehouse/db/events/data/day={i % 30}/{i:05}-{rng.getrandbits(128):032x}.parquet"
    rows = rng.randint(100_000, 2_000_000)
    columns = range(1, 21)
    bounds = [{"key": c, "value": _bound(c, i, rng)} for c in columns]
    if deletes:
        bounds = [{"key": 2147483546, "value": path.encode()}, {"key": 2147483545, "value": struct.pack("<q", i)}]
    file = {
        "content": int(deletes),
        "file_path": path,
        "file_format": "PARQUET",
        "partition": {"day": 19_000 + i % 100, "bucket": i % 16},
        "record_count": rows,
        "file_size_in_bytes": rng.randint(10**7, 5 * 10**8),
        "column_sizes": [{"key": c, "value": rng.randint(1000, 10**7)} for c in columns],
        "value_counts": [{"key": c, "value": rows} for c in columns],
        "null_value_counts": [{"key": c, "value": rng.randint(0, 10)} for c in columns],
        "nan_value_counts": [{"key": c, "value": 0} for c in columns if c % 4 == 3],
        "lower_bounds": bounds,
        "upper_bounds": bounds,
        "key_metadata": None,
        "split_offsets": [4, 4 + rng.randint(10**6, 10**8)],
        "equality_ids": None,
        "sort_order_id": 0,
        "referenced_data_file": None,
    }
    return {
        "status": 1,
        "snapshot_id": 3_051_729_675_574_597_004,
        "sequence_number": None,
        "file_sequence_number": None,
        "data_file": file,
    }


def _bound(column: int, i: int, rng: random.Random) -> bytes:
    match column % 4:
        case 0:
            return struct.pack("<q", i * 1_000_000)
        case 1:
            return struct.pack("<i", i)
        case 2:
            return f"val-{rng.randrange(10**6):06}".encode()
    return struct.pack("<d", rng.random())


def avro_text(schema: Schema, name: str) -> dict[str, Any]:
    sink = Sink()
    FORMAT.open_writer(sink, schema, properties={"avro.record-name": name}).close()
    parsed: dict[str, Any] = json.loads(open_bytes(sink.data).metadata["avro.schema"])
    return parsed


def by_fastavro(schema: Any, rows: list[Any], each: int = 64_000) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, schema, rows, codec="deflate", sync_interval=each)
    return sink.getvalue()


def open_bytes(data: bytes) -> Any:
    return FORMAT.open_reader(BytesInput(data), "memory://benchmark", size=len(data))


def read(data: bytes, columns: pa.Schema | None = None, **request: Any) -> list[pa.RecordBatch]:
    with open_bytes(data) as reader:
        return list(reader.read(ManifestReadRequest(reader.schema if columns is None else columns, **request)))


def to_dicts(data: bytes) -> int:
    return sum(1 for _ in fastavro.reader(io.BytesIO(data)))


def write(schema: Schema, batches: list[pa.RecordBatch], name: str = "table") -> int:
    sink = Sink()
    writer = FORMAT.open_writer(sink, schema, properties={"avro.record-name": name, "avro.collect-metrics": "false"})
    for batch in batches:
        writer.write(batch)
    return writer.close().size


def without(schema: pa.Schema, names: tuple[str, ...]) -> pa.Schema:
    """The columns of a manifest without some of the data file."""
    place = schema.get_field_index("data_file")
    file = schema.field(place)
    return schema.set(place, file.with_type(pa.struct([f for f in file.type if f.name not in names])))


def _data(rows: int) -> None:
    for label, required, nulls, floor in (("5 % nulls", False, 0.05, 8), ("required", True, 0.0, 8)):
        schema = flat_schema(required)
        text, values = avro_text(schema, "table"), flat_rows(rows, nulls)
        data = by_fastavro(text, values)
        compare(f"read data, {label}", lambda d=data: read(d), lambda d=data: to_dicts(d), floor=floor, rows=rows)
        two = pa.schema([open_bytes(data).schema.field(name) for name in ("id", "amount")])
        compare("  two columns of eight", lambda d=data, c=two: read(d, c), lambda d=data: to_dicts(d), rows=rows)
        batches = read(data)
        compare(
            f"write data, {label}",
            lambda s=schema, b=batches: write(s, b),
            lambda t=text, v=values: by_fastavro(t, v),
            floor=4,
            rows=rows,
            runs=3,
        )
    rows //= 4
    data = by_fastavro(avro_text(NESTED, "table"), nested_rows(rows))
    compare("read data, nested", lambda: read(data), lambda: to_dicts(data), floor=3.5, rows=rows)


def _manifests(count: int) -> None:
    text = avro_text(MANIFEST, "manifest_entry")
    made = entries(count)
    whole = by_fastavro(text, made)
    schema = open_bytes(whole).schema
    slim = without(schema, STATISTICS)
    bounds = without(schema, tuple(name for name in STATISTICS if not name.endswith("bounds")))
    keys = {LOWER: frozenset({1, 2}), UPPER: frozenset({1, 2})}
    files = {
        "manifest": whole,
        "manifest, a block an entry": by_fastavro(text, made, 1),
        "manifest of deletes": by_fastavro(text, entries(count, deletes=True)),
    }
    for label, data in files.items():

        def theirs(data: bytes = data) -> int:
            return to_dicts(data)

        floor = 8 if data is whole else 4
        compare(f"read {label}", lambda d=data: read(d), theirs, floor=floor // 2, rows=count)
        compare(
            "  bounds of two columns",
            lambda d=data: read(d, bounds, map_keys=keys),
            theirs,
            floor=floor,
            rows=count,
        )
        compare("  no statistics", lambda d=data: read(d, slim), theirs, floor=floor, rows=count)
    batches = read(whole)
    compare(
        "write manifest",
        lambda: write(MANIFEST, batches, "manifest_entry"),
        lambda: by_fastavro(text, made),
        floor=5,
        rows=count,
        runs=3,
    )


def run(rows: int = 200_000, count: int = 1_000) -> None:
    _data(rows)
    _manifests(count)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--entries", type=int, default=1_000)
    given = parser.parse_args()
    main(lambda: run(given.rows, given.entries))

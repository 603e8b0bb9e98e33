"""Parquet files: ours next to pyarrow.parquet, which ours uses too, to measure the cost of ids, metrics and checks.

    python benchmarks/bench_parquet.py [ROWS] [SHAPE ...]

Both read the bytes of one file, which is in memory, and write to memory with the same codec.
"""

from __future__ import annotations

import sys
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import compare, main
from icefield.abc import ReadRequest
from icefield.builtin.memory import MemoryFileSystem
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import as_input_file
from icefield.types import ListType, MapType, NestedField, StructType
from icefield_parquet.parquet_format import ParquetFormat

ROWS = 1_000_000
READ_FLOOR = 1 / 1.1
WRITE_FLOOR = 1 / 1.2
BATCH = 131_072
FORMAT = ParquetFormat()
MANY_GROUPS = {"write.parquet.row-group-size-bytes": str(2 << 20)}


def fields(*named: tuple[str, Any], required: bool = False) -> Schema:
    """A schema of columns that are numbered in order."""
    return Schema(*(NestedField(at, name, kind, required) for at, (name, kind) in enumerate(named, start=1)))


def numbers(rows: int, nulls: float) -> tuple[Schema, pa.Table]:
    rng = np.random.default_rng(7)
    schema = fields(
        ("id", "long"),
        ("user", "long"),
        ("count", "int"),
        ("amount", "double"),
        ("day", "date"),
        ("at", "timestamptz"),
        ("price", "decimal(12, 2)"),
        ("flag", "boolean"),
        required=not nulls,
    )
    held = [
        np.arange(rows),
        rng.integers(0, 100_000, rows),
        rng.integers(0, 100, rows).astype(np.int32),
        rng.random(rows),
        (np.arange(rows) % 20_000).astype(np.int32),
        1_600_000_000_000_000 + np.arange(rows) * 1_000_003,
        rng.integers(0, 10**6, rows),
        rng.random(rows) < 0.5,
    ]
    return schema, _table(schema, [pa.array(column, mask=_absent(rng, rows, nulls)) for column in held])


def strings(rows: int) -> tuple[Schema, pa.Table]:
    rng = np.random.default_rng(5)
    schema = fields(("name", "string"), ("note", "string"), ("key", "string"))
    spelled = [
        pa.array(rng.integers(0, 10**7, rows)).cast(pa.string()),
        pa.array([f"note {number * 7919 % rows} of all" for number in range(rows)]),
        pa.array([f"customer-{number % 300_000:08}" for number in range(rows)]),
    ]
    return schema, _table(schema, spelled)


def dictionary(rows: int) -> tuple[Schema, pa.Table]:
    rng = np.random.default_rng(6)
    schema = fields(("kind", "string"), ("city", "string"), ("status", "int"), ("agent", "string"))
    words = [pa.array([f"{name}-{number}" for number in range(few)]) for name, few in (("k", 5), ("c", 1_000))]
    agents = pa.array([f"Mozilla/5.0 ({number}) like others of its kind" for number in range(200)])
    held = [
        words[0].take(pa.array(rng.integers(0, 5, rows))),
        words[1].take(pa.array(rng.integers(0, 1_000, rows))),
        pa.array(rng.choice([200, 301, 404, 500], rows).astype(np.int32)),
        agents.take(pa.array(rng.integers(0, 200, rows), mask=rng.random(rows) < 0.1)),
    ]
    return schema, _table(schema, held)


def nested(rows: int) -> tuple[Schema, pa.Table]:
    rng = np.random.default_rng(8)
    schema = Schema(
        NestedField(1, "id", "long", required=True),
        NestedField(2, "tags", ListType(3, "string")),
        NestedField(4, "vector", ListType(5, "double", element_required=True)),
        NestedField(6, "scores", MapType(7, "string", 8, "long")),
        NestedField(9, "place", StructType(NestedField(10, "lat", "double"), NestedField(11, "city", "string"))),
    )
    arrow = schema_to_arrow(schema)
    tags = pa.array(["red", "green", "blue"]).take(pa.array(rng.integers(0, 3, 2 * rows)))
    keys = pa.array([f"k{number}" for number in range(20)]).take(pa.array(np.arange(2 * rows) % 20))
    cities = pa.array([f"city {number}" for number in range(100)]).take(pa.array(rng.integers(0, 100, rows)))
    pairs = pa.array(np.arange(rows + 1, dtype=np.int32) * 2)
    vectors = pa.array(np.arange(rows + 1, dtype=np.int32) * 4)
    lists, floats, maps, places = (arrow.field(at).type for at in range(1, 5))
    columns = [
        pa.array(np.arange(rows)),
        pa.ListArray.from_arrays(pairs, tags, type=lists),
        pa.ListArray.from_arrays(vectors, pa.array(rng.random(4 * rows)), type=floats),
        pa.MapArray.from_arrays(pairs, keys, pa.array(rng.integers(0, 1_000, 2 * rows)), type=maps),
        pa.StructArray.from_arrays(
            [pa.array(rng.random(rows)), cities], fields=list(places), mask=pa.array(np.arange(rows) % 7 == 0)
        ),
    ]
    return schema, pa.Table.from_arrays(columns, schema=arrow)


def _absent(rng: np.random.Generator, rows: int, nulls: float) -> Any:
    return rng.random(rows) < nulls if nulls else None


def _table(schema: Schema, columns: list[pa.Array]) -> pa.Table:
    arrow = schema_to_arrow(schema)
    return pa.Table.from_arrays(
        [_cast(column, field.type) for column, field in zip(columns, arrow, strict=True)], schema=arrow
    )


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return column.cast(pa.decimal128(19, 0)).cast(kind)
    return column.cast(kind)


def write(schema: Schema, batches: list[pa.RecordBatch], properties: dict[str, str]) -> str:
    location = f"memory://bench/{uuid4().hex}"
    with FORMAT.open_writer(MemoryFileSystem().open_output(location), schema, properties=properties) as writer:
        for batch in batches:
            writer.write(batch)
        writer.close()
    return location


def write_and_drop(schema: Schema, batches: list[pa.RecordBatch], properties: dict[str, str]) -> None:
    MemoryFileSystem().delete_many([write(schema, batches, properties)])


def write_peer(data: pa.Table, group_rows: int) -> None:
    pq.write_table(data, pa.BufferOutputStream(), compression="zstd", row_group_size=group_rows)


def read(file: pa.Buffer, names: list[str]) -> int:
    source = as_input_file(pa.BufferReader(file))
    with FORMAT.open_reader(source, "memory://bench", size=file.size) as reader:
        wanted = pa.schema([reader.schema.field(name) for name in names])
        return sum(batch.num_rows for batch in reader.read(ReadRequest(wanted)))


def read_peer(file: pa.Buffer, names: list[str]) -> int:
    return pq.ParquetFile(pa.BufferReader(file)).read(columns=names).num_rows


def compared(name: str, schema: Schema, data: pa.Table, few: list[str], properties: dict[str, str]) -> None:
    batches = data.to_batches(max_chunksize=BATCH)
    file = pa.py_buffer(MemoryFileSystem().open_input(write(schema, batches, properties)).read())
    names, rows = data.column_names, data.num_rows
    footer = pq.ParquetFile(pa.BufferReader(file)).metadata
    group = footer.row_group(0).num_rows
    compare(f"read {name}", lambda: read(file, names), lambda: read_peer(file, names), floor=READ_FLOOR, rows=rows)
    compare(
        "  of its columns, some", lambda: read(file, few), lambda: read_peer(file, few), floor=READ_FLOOR, rows=rows
    )
    compare(
        f"write {name}",
        lambda: write_and_drop(schema, batches, properties),
        lambda: write_peer(data, group),
        floor=WRITE_FLOOR,
        rows=rows,
    )


def run() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    shapes = {
        "numbers": lambda: (*numbers(rows, 0), ["id", "amount"], {}),
        "numbers, 10 % nulls": lambda: (*numbers(rows, 0.1), ["id", "amount"], {}),
        "strings": lambda: (*strings(rows), ["note"], {}),
        "dictionaries": lambda: (*dictionary(rows), ["city", "status"], {}),
        "nested": lambda: (*nested(rows // 2), ["tags", "place"], {}),
        "many row groups": lambda: (*numbers(rows, 0), ["id", "amount"], MANY_GROUPS),
    }
    for name in sys.argv[2:] or shapes:
        compared(name, *shapes[name]())


if __name__ == "__main__":
    main(run)

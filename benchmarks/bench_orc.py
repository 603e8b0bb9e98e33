"""ORC files: ours next to pyarrow.orc, which ours uses too, to measure the cost of field ids, metrics and types."""

from __future__ import annotations

from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.orc as po
from harness import compare, main
from icefield.abc import ReadRequest
from icefield.builtin.memory import MemoryFileSystem
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import as_input_file
from icefield.types import NestedField
from icefield_orc.options import write_options
from icefield_orc.orc_format import OrcFormat

ROWS = 1_000_000
FLOOR = 1 / 1.2
SCHEMA = Schema(
    NestedField(1, "n", "long", required=True),
    NestedField(2, "s", "string"),
    NestedField(3, "d", "double"),
    NestedField(4, "day", "date"),
    NestedField(5, "at", "timestamptz"),
    NestedField(6, "price", "decimal(12, 2)"),
)


def table() -> pa.Table:
    rng = np.random.default_rng(7)
    numbers = np.arange(ROWS)
    arrow = schema_to_arrow(SCHEMA)
    columns = [
        pa.array(numbers),
        pa.array([None if n % 11 == 0 else f"value-{n % 1000}" for n in range(ROWS)]),
        pa.array(rng.random(ROWS)),
        pa.array((numbers % 20_000).astype(np.int32)).cast(pa.date32()),
        pa.array(1_600_000_000_000_000 + numbers * 1_000_003).cast(pa.timestamp("us", "UTC")),
        pa.array(rng.integers(0, 10**6, ROWS)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(12, 2)),
    ]
    return pa.Table.from_arrays(columns, schema=arrow)


def write(data: pa.Table) -> str:
    location = f"memory://bench/{uuid4().hex}"
    with OrcFormat().open_writer(MemoryFileSystem().open_output(location), SCHEMA) as writer:
        for batch in data.to_batches(max_chunksize=131_072):
            writer.write(batch)
        writer.close()
    MemoryFileSystem().delete_many([location])
    return location


def write_peer(data: pa.Table) -> None:
    with po.ORCWriter(pa.BufferOutputStream(), **write_options({}, {})) as writer:
        for batch in data.to_batches(max_chunksize=131_072):
            writer.write(pa.Table.from_batches([batch]))


def kept(data: pa.Table) -> pa.Buffer:
    location = f"memory://bench/{uuid4().hex}"
    with OrcFormat().open_writer(MemoryFileSystem().open_output(location), SCHEMA) as writer:
        for batch in data.to_batches(max_chunksize=131_072):
            writer.write(batch)
        writer.close()
    return pa.py_buffer(MemoryFileSystem().open_input(location).read())


def read(file: pa.Buffer, names: list[str]) -> int:
    source = as_input_file(pa.BufferReader(file))
    with OrcFormat().open_reader(source, "memory://bench", size=file.size) as reader:
        wanted = pa.schema([reader.schema.field(name) for name in names])
        return sum(batch.num_rows for batch in reader.read(ReadRequest(wanted)))


def read_peer(file: pa.Buffer, names: list[str]) -> int:
    return po.ORCFile(pa.BufferReader(file)).read(columns=names).num_rows


def run() -> None:
    data = table()
    file = kept(data)
    names = data.column_names
    compare("read, every column", lambda: read(file, names), lambda: read_peer(file, names), floor=FLOOR, rows=ROWS)
    few = ["n", "d"]
    compare("read, two columns", lambda: read(file, few), lambda: read_peer(file, few), floor=FLOOR, rows=ROWS)
    compare("write", lambda: write(data), lambda: write_peer(data), floor=FLOOR, rows=ROWS)


if __name__ == "__main__":
    main(run)

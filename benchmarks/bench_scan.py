"""Reading the data files of a table to Arrow, beside pyarrow's own dataset over the same files."""

from __future__ import annotations

import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from harness import compare, main
from icefield.expressions import parse
from icefield.file_io import FileIO
from icefield.locations import LocationProvider
from icefield.manifest import DataFile
from icefield.partitioning import UNPARTITIONED
from icefield.plugins import Plugins
from icefield.scan.reading import read_tasks
from icefield.scan.tasks import FileScanTask, ScanContext
from icefield.schema import Schema
from icefield.schema_arrow import schema_from_arrow, schema_to_arrow
from icefield.types import LongType, NestedField
from icefield.writing.context import WriteContext
from icefield.writing.data_writer import write_batches

ROWS = 6_000_000
FLOOR = 1 / 1.15


def rows(count: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(5)
    words = pa.array([f"customer-{number:06}" for number in range(50_000)])
    return pa.table(
        {
            "id": pa.array(np.arange(count)),
            "ts": pa.array(1_700_000_000_000_000 + np.arange(count) * 1_000, pa.timestamp("us", "UTC")),
            "user": pa.array(rng.integers(0, 100_000, count)),
            "amount": pa.array(rng.random(count)),
            "quantity": pa.array(rng.integers(0, 100, count).astype(np.int32)),
            "name": words.take(pa.array(rng.integers(0, len(words), count))),
            "note": pa.array(rng.integers(0, 10**9, count)).cast(pa.string()),
            "flag": pa.array(rng.random(count) < 0.5),
        }
    )


def write(table: pa.Table, io: FileIO, location: str, files: int, group_bytes: int) -> tuple[Schema, list[DataFile]]:
    schema = schema_from_arrow(table.schema)
    properties = {"write.parquet.row-group-size-bytes": str(group_bytes)}
    locations = LocationProvider.of(location, {})
    context = WriteContext(schema, UNPARTITIONED, locations, io, properties=properties, workers=1)
    step = -(-table.num_rows // files)
    written = []
    for number in range(files):
        written += write_batches(context, table.slice(number * step, step), task_id=number)
    return schema, written


LAYOUTS = {
    "one row group": (1, 1 << 30),
    "row groups of 128 MiB": (1, 128 << 20),
    "row groups of 16 MiB": (1, 16 << 20),
    "24 files": (24, 128 << 20),
}


def run() -> None:
    io = FileIO(Plugins.installed())
    table = rows(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, (files, group_bytes)) in enumerate(LAYOUTS.items()):
            schema, written = write(table, io, f"file://{folder}/{number}", files, group_bytes)
            measure(name, table.num_rows, io, schema, written)


def measure(name: str, count: int, io: FileIO, schema: Schema, written: list[DataFile]) -> None:
    dataset = ds.dataset([file.file_path.removeprefix("file://") for file in written])

    def ours(projection: Schema, text: str | None = None, table: Schema = schema) -> pa.Table:
        tasks = [FileScanTask(file, parse(text) if text else None) for file in written]
        batches = read_tasks(tasks, ScanContext(table, projection, io))
        return pa.Table.from_batches(batches, schema_to_arrow(projection))

    narrow = schema.select("id", "amount")
    names = narrow.column_names
    assert ours(schema).num_rows == count
    compare(f"{name}: all columns", lambda: ours(schema), dataset.to_table, rows=count, floor=FLOOR)
    compare(f"{name}: two columns", lambda: ours(narrow), lambda: dataset.to_table(names), rows=count, floor=FLOOR)
    low, high = count // 2, count // 2 + count // 100
    text, condition = f"id >= {low} and id < {high}", (pc.field("id") >= low) & (pc.field("id") < high)
    assert ours(schema, text).num_rows == high - low
    compare(f"{name}: 1 %", lambda: ours(schema, text), lambda: dataset.to_table(filter=condition), floor=FLOOR)
    half = pc.field("quantity") < 50
    compare(
        f"{name}: half",
        lambda: ours(narrow, "quantity < 50"),
        lambda: dataset.to_table(names, filter=half),
        floor=FLOOR,
    )
    evolved = Schema(
        *(NestedField(field.field_id, f"{field.name}_new", field.field_type) for field in schema.fields),
        NestedField(100, "added", LongType(), initial_default=7),
    )
    compare(f"{name}: evolved", lambda: ours(evolved, None, evolved), dataset.to_table, rows=count, floor=FLOOR)


if __name__ == "__main__":
    main(run)

"""Tables of 10^5, 10^6 or 10^7 files in a catalog ``directory`` on local disk: metadata without data files.

The files are those of ``make_table.data_file``, made in columns: a million takes 15 seconds. A table that exists
is used again.

    python benchmarks/large_tables.py DIR --files 1000000 [--manifests 1000] [--columns 20]
"""

from __future__ import annotations

import argparse
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import icefield
import numpy as np
import pyarrow as pa
from icefield.catalog import Table
from icefield.manifest import ALL_COLUMNS, ManifestEntries, ManifestFile, ManifestWriter, write_manifest_list
from icefield.manifest import schemas as f
from icefield.manifest.columns import COLUMN_TYPES, MAP_TYPES
from icefield.plugins import Plugins
from icefield.schema import Schema
from icefield.storage import FileIO
from icefield.types import DoubleType, LongType
from make_table import FIRST_DAY, ROWS, SPEC, metadata_json, schema_of

_DAY_US = 86_400_000_000
_SNAPSHOT = 1000


def large_table(folder: Path, files: int, manifests: int | None = None, columns: int = 20) -> Table:
    """Return the table ``db.t`` of the warehouse ``folder``, with ``files`` files, by default 1,000 in a manifest."""
    folder = Path(folder).absolute()
    catalog = icefield.load_catalog("large", type="directory", warehouse=f"file://{folder}")
    manifests = manifests or -(-files // 1000)
    metadata = folder / "db" / "t" / "metadata"
    if not (metadata / "v1.metadata.json").exists():
        metadata.mkdir(parents=True, exist_ok=True)
        _write(metadata, files, manifests, columns)
    return catalog.load_table("db.t")


def _write(metadata: Path, files: int, manifests: int, columns: int) -> None:
    io, location, schema = FileIO(Plugins.installed()), f"file://{metadata.parent}", schema_of(columns)
    written: list[ManifestFile] = []
    for day in range(manifests):
        first, last = day * files // manifests, (day + 1) * files // manifests
        with ManifestWriter(io, f"{location}/metadata/{day:05}-m0.avro", SPEC, schema, 2, _SNAPSHOT) as writer:
            writer.add_entries(entries(location, schema, first, last - first, day))
        written.append(writer.close())
    listed = f"{location}/metadata/snap-{_SNAPSHOT}.avro"
    write_manifest_list(
        io, listed, written, format_version=2, snapshot_id=_SNAPSHOT, parent_snapshot_id=None, sequence_number=1
    )
    (metadata / "v1.metadata.json").write_text(json.dumps(metadata_json(location, schema, listed, columns)))


def entries(location: str, schema: Schema, first: int, count: int, day: int) -> ManifestEntries:
    """Entries of ``data_file(location, schema, number, day)`` for ``count`` numbers from ``first`` on."""
    numbers = np.arange(first, first + count)
    ids = np.array([field.field_id for field in schema.fields])
    doubles = [field.field_id for field in schema.fields if isinstance(field.field_type, DoubleType)]
    products = numbers[:, None] * ids
    columns: dict[int, pa.Array] = {
        f.STATUS: pa.array(np.ones(count, np.int32)),
        f.SNAPSHOT_ID: pa.array(np.full(count, _SNAPSHOT)),
        f.SEQUENCE_NUMBER: pa.nulls(count, pa.int64()),
        f.FILE_SEQUENCE_NUMBER: pa.nulls(count, pa.int64()),
        f.FILE_PATH: pa.array([_path(location, number, day) for number in numbers.tolist()]),
        f.FILE_FORMAT: pa.array(np.full(count, "parquet")).cast(pa.string()),
        f.RECORD_COUNT: pa.array(np.full(count, ROWS)),
        f.FILE_SIZE: pa.array(128_000_000 + numbers),
        f.PARTITION: pa.StructArray.from_arrays(
            [
                pa.array(np.full(count, FIRST_DAY + day, np.int32)).view(pa.date32()),
                pa.array((numbers % 16).astype(np.int32)),
            ],
            ["ts_day", "user_id_bucket"],
        ),
        f.COLUMN_SIZES: _map(f.COLUMN_SIZES, ids, 5_000_000 + products % 1_000_003),
        f.VALUE_COUNTS: _map(f.VALUE_COUNTS, ids, np.full_like(products, ROWS)),
        f.NULL_VALUE_COUNTS: _map(f.NULL_VALUE_COUNTS, ids, products % 7),
        f.NAN_VALUE_COUNTS: _map(f.NAN_VALUE_COUNTS, np.array(doubles), np.zeros((count, len(doubles)), np.int64)),
        f.LOWER_BOUNDS: _bounds(schema, numbers, lambda kind, i: _lower(kind, i, numbers, day)),
        f.UPPER_BOUNDS: _bounds(schema, numbers, lambda kind, i: _upper(kind, i, numbers, day)),
        f.SPLIT_OFFSETS: pa.array([(4, 64_000_004)] * count, COLUMN_TYPES[f.SPLIT_OFFSETS]),
        f.SORT_ORDER_ID: pa.array(np.zeros(count, np.int32)),
    }
    manifest = ManifestFile(manifest_path=location, manifest_length=0, added_snapshot_id=_SNAPSHOT, sequence_number=-1)
    return ManifestEntries(manifest, count, columns, None, ALL_COLUMNS)


def _path(location: str, number: int, day: int) -> str:
    name = f"{number % 4:05}-{number}-{uuid.UUID(int=number * 7919 << 32)}"
    return f"{location}/data/ts_day={day:05}/user_id_bucket={number % 16}/{name}-00001.parquet"


def _lower(kind: object, i: int, numbers: np.ndarray[Any, Any], day: int) -> np.ndarray[Any, Any]:
    if i == 1:
        return numbers * ROWS
    if i == 3:
        return (FIRST_DAY + day) * _DAY_US + numbers % 1000
    if isinstance(kind, LongType):
        return numbers * i % 9973
    return numbers % 101 / 7 if isinstance(kind, DoubleType) else np.char.mod(b"aaaa-%08d", numbers % 997)


def _upper(kind: object, i: int, numbers: np.ndarray[Any, Any], day: int) -> np.ndarray[Any, Any]:
    if i == 1:
        return numbers * ROWS + ROWS - 1
    if i == 3:
        return (FIRST_DAY + day + 1) * _DAY_US - 1 - numbers % 77
    if isinstance(kind, LongType):
        return 10**6 + numbers * i % 9973
    return 1e6 + numbers % 103 / 7 if isinstance(kind, DoubleType) else np.char.mod(b"zzzz-%08d", numbers % 991)


def _map(kind: int, keys: np.ndarray[Any, Any], values: np.ndarray[Any, Any] | pa.Array) -> pa.Array:
    flat = values if isinstance(values, pa.Array) else pa.array(values.reshape(-1))
    rows = len(flat) // len(keys)
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(len(keys))
    made = pa.MapArray.from_arrays(pa.array(offsets), pa.array(np.tile(keys.astype(np.int32), rows)), flat)
    return made.cast(MAP_TYPES[kind])


def _bounds(
    schema: Schema, numbers: np.ndarray[Any, Any], values_of: Callable[[object, int], np.ndarray[Any, Any]]
) -> pa.Array:
    columns = {field.field_id: values_of(field.field_type, field.field_id) for field in schema.fields}
    rows = np.empty(len(numbers), np.dtype([(str(i), column.dtype) for i, column in columns.items()]))
    for i, column in columns.items():
        rows[str(i)] = column
    widths = np.tile([column.dtype.itemsize for column in columns.values()], len(numbers))
    ends = pa.py_buffer(np.concatenate([[0], np.cumsum(widths)]).astype(np.int32))
    flat = pa.Array.from_buffers(pa.binary(), len(widths), [None, ends, pa.py_buffer(rows.tobytes())])
    return _map(f.LOWER_BOUNDS, np.array(list(columns)), flat)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--manifests", type=int, help="by default one for 1,000 files")
    parser.add_argument("--columns", type=int, default=20)
    given = parser.parse_args()
    print(large_table(given.folder, given.files, given.manifests, given.columns).metadata_location)


if __name__ == "__main__":
    main()

"""Fabricates a table on local disk that has metadata but no data files, as planning needs no more.

Version 2, partitioned by day(ts) and bucket[16](user_id), one day a manifest, statistics of every column. Manifests
are written in blocks of 64 KiB, as Java does, or with one record a block, as PyIceberg does.

    python benchmarks/make_table.py DIR --manifests 100 --files 1000 --blocks java
"""

from __future__ import annotations

import argparse
import json
import struct
import uuid
from pathlib import Path

from icefield.manifest import DataFile, ManifestFile, ManifestWriter, write_manifest_list
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.partitioning.spec import spec_to_json
from icefield.partitioning.transforms import parse_transform
from icefield.plugins import Plugins
from icefield.schema import Schema, schema_to_json
from icefield.storage import FileIO
from icefield.types import DoubleType, LongType, NestedField, StringType, TimestampType

FIRST_DAY = 19_000
ROWS = 1_000_000
_DAY_US = 86_400_000_000


def schema_of(columns: int) -> Schema:
    """id, user_id, ts, and further columns of long, double and string in turn."""
    kinds = (LongType(), DoubleType(), StringType())
    return Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "user_id", LongType()),
        NestedField(3, "ts", TimestampType()),
        *(NestedField(i, f"c{i:02}", kinds[i % 3]) for i in range(4, columns + 1)),
    )


SPEC = PartitionSpec(
    PartitionField(3, 1000, parse_transform("day"), "ts_day"),
    PartitionField(2, 1001, parse_transform("bucket[16]"), "user_id_bucket"),
)


def data_file(location: str, schema: Schema, number: int, day: int) -> DataFile:
    """Return the file with that number over all manifests. Its ids follow the ids of the file before."""
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for field in schema.fields:
        i = field.field_id
        if i == 1:
            low, high = struct.pack("<q", number * ROWS), struct.pack("<q", number * ROWS + ROWS - 1)
        elif i == 3:
            start = (FIRST_DAY + day) * _DAY_US
            low, high = struct.pack("<q", start + number % 1000), struct.pack("<q", start + _DAY_US - 1 - number % 77)
        elif isinstance(field.field_type, LongType):
            low, high = struct.pack("<q", number * i % 9973), struct.pack("<q", 10**6 + number * i % 9973)
        elif isinstance(field.field_type, DoubleType):
            low, high = struct.pack("<d", number % 101 / 7), struct.pack("<d", 1e6 + number % 103 / 7)
        else:
            low, high = b"aaaa-%08d" % (number % 997), b"zzzz-%08d" % (number % 991)
        lower[i], upper[i] = low, high
    ids = [field.field_id for field in schema.fields]
    name = f"{number % 4:05}-{number}-{uuid.UUID(int=number * 7919 << 32)}"
    folder = f"ts_day={day:05}/user_id_bucket={number % 16}"
    return DataFile(
        file_path=f"{location}/data/{folder}/{name}-00001.parquet",
        file_format="parquet",
        record_count=ROWS,
        file_size_in_bytes=128_000_000 + number,
        partition=(FIRST_DAY + day, number % 16),
        column_sizes={i: 5_000_000 + number * i % 1_000_003 for i in ids},
        value_counts=dict.fromkeys(ids, ROWS),
        null_value_counts={i: number * i % 7 for i in ids},
        nan_value_counts={f.field_id: 0 for f in schema.fields if isinstance(f.field_type, DoubleType)},
        lower_bounds=lower,
        upper_bounds=upper,
        split_offsets=(4, 64_000_004),
        sort_order_id=0,
    )


def make_table(folder: Path, manifests: int = 100, files: int = 1000, columns: int = 20, blocks: str = "java") -> Path:
    """Return the path of the metadata file of the table below ``folder``, and write the table unless it exists."""
    folder = Path(folder).absolute()
    path = folder / "metadata" / "v1.metadata.json"
    if path.exists():
        return path
    (folder / "metadata").mkdir(parents=True)
    io = FileIO(Plugins.installed())
    schema, location = schema_of(columns), f"file://{folder}"
    properties = {"avro.block-size": "1"} if blocks == "pyiceberg" else {}
    written: list[ManifestFile] = []
    for day in range(manifests):
        target = f"{location}/metadata/{day:05}-m0.avro"
        with ManifestWriter(io, target, SPEC, schema, 2, 1000, properties=properties) as writer:
            writer.add(data_file(location, schema, day * files + i, day) for i in range(files))
        written.append(writer.close())
    listed = f"{location}/metadata/snap-1000.avro"
    write_manifest_list(
        io, listed, written, format_version=2, snapshot_id=1000, parent_snapshot_id=None, sequence_number=1
    )
    path.write_text(json.dumps(metadata_json(location, schema, listed, columns)))
    return path


def metadata_json(location: str, schema: Schema, manifest_list: str, columns: int) -> dict[str, object]:
    now = 1_700_000_000_000
    return {
        "format-version": 2,
        "table-uuid": str(uuid.UUID(int=42)),
        "location": location,
        "last-sequence-number": 1,
        "last-updated-ms": now,
        "last-column-id": columns,
        "schemas": [schema_to_json(schema)],
        "current-schema-id": 0,
        "partition-specs": [spec_to_json(SPEC)],
        "default-spec-id": 0,
        "last-partition-id": 1001,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": 1000,
        "refs": {"main": {"snapshot-id": 1000, "type": "branch"}},
        "snapshots": [
            {
                "snapshot-id": 1000,
                "sequence-number": 1,
                "timestamp-ms": now,
                "manifest-list": manifest_list,
                "summary": {"operation": "append"},
                "schema-id": 0,
            }
        ],
        "snapshot-log": [{"snapshot-id": 1000, "timestamp-ms": now}],
        "metadata-log": [],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--manifests", type=int, default=100)
    parser.add_argument("--files", type=int, default=1000, help="in each manifest")
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--blocks", choices=("java", "pyiceberg"), default="java")
    given = parser.parse_args()
    print(make_table(given.folder, given.manifests, given.files, given.columns, given.blocks))


if __name__ == "__main__":
    main()

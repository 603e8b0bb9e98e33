"""Table metadata for tests: the documents of the vectors, and tables made from them."""

import copy
import json
from typing import Any

from icefield.metadata import TableMetadata, decode_metadata, encode_metadata, new_table_metadata
from icefield.metadata.snapshots import Snapshot
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.schema import Schema
from icefield.types import LongType, NestedField, StringType, TimestamptzType
from vectors import VECTORS

LOCATION = "s3://b/wh/data.db/table/metadata/v7.metadata.json"
NOW_MS = 1_700_000_000_000

_DOCUMENTS = {entry["name"]: entry["json"] for entry in VECTORS["table_metadata"]}
V1_MINIMAL, V1_LOGGED, V1_INLINE, V2, V3 = _DOCUMENTS


def document(name: str, **changes: Any) -> dict[str, Any]:
    """A copy of a document of the vectors; a change such as ``last_column_id=3`` sets a key, and ``...`` removes it."""
    result = copy.deepcopy(_DOCUMENTS[name])
    for attribute, value in changes.items():
        key = attribute.replace("_", "-")
        result.pop(key, None)
        if value is not ...:
            result[key] = value
    return result


def load(source: dict[str, Any] | str, **changes: Any) -> TableMetadata:
    """Decode a document, or one of the vectors by name."""
    if isinstance(source, str):
        source = document(source, **changes)
    return decode_metadata(json.dumps(source).encode(), LOCATION)


def written(metadata: TableMetadata) -> dict[str, Any]:
    """The JSON document of a table's metadata."""
    return json.loads(encode_metadata(metadata))


SCHEMA = Schema(
    NestedField(1, "id", LongType(), True),
    NestedField(2, "ts", TimestamptzType()),
    NestedField(3, "name", StringType()),
)
BY_DAY = PartitionSpec(PartitionField(2, 1000, "day", "ts_day"))


def new_table(format_version: int = 2, **arguments: Any) -> TableMetadata:
    """A new table, partitioned by day."""
    arguments = {"schema": SCHEMA, "spec": BY_DAY, "location": "s3://b/wh/t", "now_ms": NOW_MS, **arguments}
    return new_table_metadata(format_version=format_version, **arguments)


def snapshot_for(metadata: TableMetadata, snapshot_id: int, **fields: Any) -> Snapshot:
    """A snapshot that may follow on a table's current one."""
    given: dict[str, Any] = {
        "snapshot_id": snapshot_id,
        "parent_snapshot_id": metadata.current_snapshot_id,
        "sequence_number": metadata.next_sequence_number(),
        "timestamp_ms": metadata.last_updated_ms + 1_000,
        "manifest_list": f"{metadata.location}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema_id": metadata.current_schema_id,
    }
    if metadata.format_version > 2:
        given |= {"first_row_id": metadata.next_row_id, "added_rows": 10}
    return Snapshot(**{**given, **fields})

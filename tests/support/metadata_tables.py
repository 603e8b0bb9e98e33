"""The metadata tables, and the columns of Java's: from Spark's DESCRIBE with the runtime of Iceberg 1.12."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

NAMES: Final = (
    "history",
    "snapshots",
    "refs",
    "files",
    "data_files",
    "delete_files",
    "all_files",
    "all_data_files",
    "all_delete_files",
    "manifests",
    "all_manifests",
    "entries",
    "all_entries",
    "partitions",
    "position_deletes",
    "metadata_log_entries",
)

_SCALARS: Final = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
}


def spark_type(kind: pa.DataType) -> str:
    """How Spark writes the type."""
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{spark_type(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_type(kind.key_type)},{spark_type(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    return _SCALARS[kind]


def described(schema: pa.Schema) -> dict[str, str]:
    """Each column with its type, as Spark's DESCRIBE names them, in order."""
    return {field.name: spark_type(field.type) for field in schema}


def _columns(text: str) -> dict[str, str]:
    """Columns written as ``name type; name type``."""
    return dict(one.split(" ", 1) for one in text.split("; "))  # type: ignore[misc]


def _metric(bound: str) -> str:
    counts = ("column_size", "value_count", "null_value_count", "nan_value_count")
    return f"struct<{','.join(f'{c}:bigint' for c in counts)},lower_bound:{bound},upper_bound:{bound}>"


_PARTITION: Final = "struct<kind:string,day_month:int>"
_METRICS: Final = ",".join(
    f"{name}:{_metric(kind)}"
    for name, kind in (("day", "date"), ("id", "bigint"), ("kind", "string"), ("s.n", "int"), ("x", "double"))
)
_FILE: Final = (
    f"content int; file_path string; file_format string; spec_id int; partition {_PARTITION}; record_count bigint; "
    "file_size_in_bytes bigint; column_sizes map<int,bigint>; value_counts map<int,bigint>; "
    "null_value_counts map<int,bigint>; nan_value_counts map<int,bigint>; lower_bounds map<int,binary>; "
    "upper_bounds map<int,binary>; key_metadata binary; split_offsets array<bigint>; equality_ids array<int>; "
    "sort_order_id int; first_row_id bigint; referenced_data_file string; content_offset bigint; "
    "content_size_in_bytes bigint"
)
_FILES: Final = f"{_FILE}; readable_metrics struct<{_METRICS}>"
_ENTRIES: Final = (
    "status int; snapshot_id bigint; sequence_number bigint; file_sequence_number bigint; "
    f"data_file struct<{_FILE.replace('; ', ',').replace(' ', ':')}>; readable_metrics struct<{_METRICS}>"
)
_MANIFESTS: Final = (
    "content int; path string; length bigint; partition_spec_id int; added_snapshot_id bigint; "
    "added_data_files_count int; existing_data_files_count int; deleted_data_files_count int; "
    "added_delete_files_count int; existing_delete_files_count int; deleted_delete_files_count int; "
    "partition_summaries "
    "array<struct<contains_null:boolean,contains_nan:boolean,lower_bound:string,upper_bound:string>>"
)

JAVA_COLUMNS: Final = {
    "history": _columns("made_current_at timestamp; snapshot_id bigint; parent_id bigint; is_current_ancestor boolean"),
    "snapshots": _columns(
        "committed_at timestamp; snapshot_id bigint; parent_id bigint; operation string; manifest_list string; "
        "summary map<string,string>"
    ),
    "refs": _columns(
        "name string; type string; snapshot_id bigint; max_reference_age_in_ms bigint; min_snapshots_to_keep int; "
        "max_snapshot_age_in_ms bigint"
    ),
    **dict.fromkeys(
        ("files", "data_files", "delete_files", "all_files", "all_data_files", "all_delete_files"), _columns(_FILES)
    ),
    "manifests": _columns(_MANIFESTS),
    "all_manifests": _columns(f"{_MANIFESTS}; reference_snapshot_id bigint; key_metadata binary"),
    "entries": _columns(_ENTRIES),
    "all_entries": _columns(_ENTRIES),
    "partitions": _columns(
        f"partition {_PARTITION}; spec_id int; record_count bigint; file_count int; "
        "total_data_file_size_in_bytes bigint; position_delete_record_count bigint; position_delete_file_count int; "
        "equality_delete_record_count bigint; equality_delete_file_count int; last_updated_at timestamp; "
        "last_updated_snapshot_id bigint"
    ),
    "position_deletes": _columns(
        "file_path string; pos bigint; "
        f"row struct<id:bigint,kind:string,day:date,x:double,s:struct<n:int>>; partition {_PARTITION}; spec_id int; "
        "delete_file_path string"
    ),
    "metadata_log_entries": _columns(
        "timestamp timestamp; file string; latest_snapshot_id bigint; latest_schema_id int; "
        "latest_sequence_number bigint"
    ),
}
"""Of a table ``id bigint, kind string, day date, x double, s struct<n int>``, by ``kind`` and ``month(day)``."""

"""The fields of manifests and manifest lists in each format version, and the schemas that follow from them.

The tables below are the spec's own ("Manifests" and "Manifest Lists"): a field is required, optional, or absent from
a version. A writer of version v leaves out the fields that are absent from v and writes the required ones; a reader
follows ``reader_rule`` for files of every version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

import pyarrow as pa

from icefield.errors import UnsupportedFeature
from icefield.partitioning import PartitionSpec
from icefield.schema import Schema
from icefield.types import (
    BinaryType,
    BooleanType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UnknownType,
)
from icefield.types.arrow.types import to_arrow_type

Requirement = Literal["required", "optional"] | None
ReaderRule = Literal["optional", "ignore", "default-or-error"]

FORMAT_VERSIONS: Final = (1, 2, 3)

STATUS: Final = 0
SNAPSHOT_ID: Final = 1
DATA_FILE: Final = 2
SEQUENCE_NUMBER: Final = 3
FILE_SEQUENCE_NUMBER: Final = 4

CONTENT: Final = 134
FILE_PATH: Final = 100
FILE_FORMAT: Final = 101
PARTITION: Final = 102
RECORD_COUNT: Final = 103
FILE_SIZE: Final = 104
BLOCK_SIZE: Final = 105
COLUMN_SIZES: Final = 108
VALUE_COUNTS: Final = 109
NULL_VALUE_COUNTS: Final = 110
NAN_VALUE_COUNTS: Final = 137
LOWER_BOUNDS: Final = 125
UPPER_BOUNDS: Final = 128
KEY_METADATA: Final = 131
SPLIT_OFFSETS: Final = 132
EQUALITY_IDS: Final = 135
SORT_ORDER_ID: Final = 140
FIRST_ROW_ID: Final = 142
REFERENCED_DATA_FILE: Final = 143
CONTENT_OFFSET: Final = 144
CONTENT_SIZE: Final = 145

PARTITIONS: Final = 507

BLOCK_SIZE_DEFAULT: Final = 67_108_864
"""The value that a v1 writer stores in ``block_size_in_bytes``, which is required but never read."""

_INT, _LONG, _STRING, _BINARY, _BOOLEAN = IntegerType(), LongType(), StringType(), BinaryType(), BooleanType()
_STRUCT = StructType()


@dataclass(frozen=True, slots=True)
class FieldRule:
    """One field of the spec's tables: its requirement in versions 1, 2 and 3, and the default of an absent value.

    ``written`` is false for fields that a version allows but the newest revision of the spec tells writers to omit.
    """

    field_id: int
    name: str
    type: IcebergType
    v1: Requirement
    v2: Requirement
    v3: Requirement
    read_default: Any = None
    written: bool = True

    def requirement(self, format_version: int) -> Requirement:
        """The requirement in a format version."""
        return (self.v1, self.v2, self.v3)[format_version - 1]

    @property
    def reader_rule(self) -> ReaderRule:
        """How a reader takes the field, in files of every version: it relies on fields that v1 *and* v2 require."""
        if not self.written or (self.v1 is not None and self.v2 is None):
            return "ignore"
        return "default-or-error" if self.v1 == self.v2 == "required" else "optional"


def _map(field_id: int, value: IcebergType) -> MapType:
    return MapType(field_id, _INT, field_id + 1, value, value_required=True)


ENTRY_FIELDS: Final = (
    FieldRule(STATUS, "status", _INT, "required", "required", "required"),
    FieldRule(SNAPSHOT_ID, "snapshot_id", _LONG, "required", "optional", "optional"),
    FieldRule(SEQUENCE_NUMBER, "sequence_number", _LONG, None, "optional", "optional"),
    FieldRule(FILE_SEQUENCE_NUMBER, "file_sequence_number", _LONG, None, "optional", "optional"),
    FieldRule(DATA_FILE, "data_file", _STRUCT, "required", "required", "required"),
)

DATA_FILE_FIELDS: Final = (
    FieldRule(CONTENT, "content", _INT, None, "required", "required", read_default=0),
    FieldRule(FILE_PATH, "file_path", _STRING, "required", "required", "required"),
    FieldRule(FILE_FORMAT, "file_format", _STRING, "required", "required", "required"),
    FieldRule(PARTITION, "partition", _STRUCT, "required", "required", "required"),
    FieldRule(RECORD_COUNT, "record_count", _LONG, "required", "required", "required"),
    FieldRule(FILE_SIZE, "file_size_in_bytes", _LONG, "required", "required", "required"),
    FieldRule(BLOCK_SIZE, "block_size_in_bytes", _LONG, "required", None, None),
    FieldRule(106, "file_ordinal", _INT, "optional", None, None, written=False),
    FieldRule(107, "sort_columns", ListType(112, _INT, element_required=True), "optional", None, None, written=False),
    FieldRule(COLUMN_SIZES, "column_sizes", _map(117, _LONG), "optional", "optional", "optional"),
    FieldRule(VALUE_COUNTS, "value_counts", _map(119, _LONG), "optional", "optional", "optional"),
    FieldRule(NULL_VALUE_COUNTS, "null_value_counts", _map(121, _LONG), "optional", "optional", "optional"),
    FieldRule(NAN_VALUE_COUNTS, "nan_value_counts", _map(138, _LONG), "optional", "optional", "optional"),
    FieldRule(111, "distinct_counts", _map(123, _LONG), "optional", "optional", None, written=False),
    FieldRule(LOWER_BOUNDS, "lower_bounds", _map(126, _BINARY), "optional", "optional", "optional"),
    FieldRule(UPPER_BOUNDS, "upper_bounds", _map(129, _BINARY), "optional", "optional", "optional"),
    FieldRule(KEY_METADATA, "key_metadata", _BINARY, "optional", "optional", "optional"),
    FieldRule(SPLIT_OFFSETS, "split_offsets", ListType(133, _LONG, True), "optional", "optional", "optional"),
    FieldRule(EQUALITY_IDS, "equality_ids", ListType(136, _INT, True), None, "optional", "optional"),
    FieldRule(SORT_ORDER_ID, "sort_order_id", _INT, "optional", "optional", "optional"),
    FieldRule(FIRST_ROW_ID, "first_row_id", _LONG, None, None, "optional"),
    FieldRule(REFERENCED_DATA_FILE, "referenced_data_file", _STRING, None, "optional", "optional"),
    FieldRule(CONTENT_OFFSET, "content_offset", _LONG, None, None, "optional"),
    FieldRule(CONTENT_SIZE, "content_size_in_bytes", _LONG, None, None, "optional"),
)

FIELD_SUMMARY_FIELDS: Final = (
    FieldRule(509, "contains_null", _BOOLEAN, "required", "required", "required"),
    FieldRule(518, "contains_nan", _BOOLEAN, "optional", "optional", "optional"),
    FieldRule(510, "lower_bound", _BINARY, "optional", "optional", "optional"),
    FieldRule(511, "upper_bound", _BINARY, "optional", "optional", "optional"),
)

MANIFEST_FILE_FIELDS: Final = (
    FieldRule(500, "manifest_path", _STRING, "required", "required", "required"),
    FieldRule(501, "manifest_length", _LONG, "required", "required", "required"),
    FieldRule(502, "partition_spec_id", _INT, "required", "required", "required"),
    FieldRule(517, "content", _INT, None, "required", "required", read_default=0),
    FieldRule(515, "sequence_number", _LONG, None, "required", "required", read_default=0),
    FieldRule(516, "min_sequence_number", _LONG, None, "required", "required", read_default=0),
    FieldRule(503, "added_snapshot_id", _LONG, "required", "required", "required"),
    FieldRule(504, "added_files_count", _INT, "optional", "required", "required"),
    FieldRule(505, "existing_files_count", _INT, "optional", "required", "required"),
    FieldRule(506, "deleted_files_count", _INT, "optional", "required", "required"),
    FieldRule(512, "added_rows_count", _LONG, "optional", "required", "required"),
    FieldRule(513, "existing_rows_count", _LONG, "optional", "required", "required"),
    FieldRule(514, "deleted_rows_count", _LONG, "optional", "required", "required"),
    FieldRule(PARTITIONS, "partitions", ListType(508, _STRUCT, True), "optional", "optional", "optional"),
    FieldRule(519, "key_metadata", _BINARY, "optional", "optional", "optional"),
    FieldRule(520, "first_row_id", _LONG, None, None, "optional"),
)


def arrow_types(rules: Iterable[FieldRule], *, maps: bool = False) -> dict[int, pa.DataType]:
    """The Arrow types of the fields that readers take, by id: of the maps only, or of all fields but maps and structs.

    The parts of lists and maps have Arrow's own names.
    """
    taken = (rule for rule in rules if rule.reader_rule != "ignore" and rule.type is not _STRUCT)
    return {rule.field_id: _arrow_type(rule.type) for rule in taken if isinstance(rule.type, MapType) is maps}


def _arrow_type(kind: IcebergType) -> pa.DataType:
    if isinstance(kind, ListType):
        return pa.list_(to_arrow_type(kind.element_type))
    if isinstance(kind, MapType):
        return pa.map_(to_arrow_type(kind.key_type), to_arrow_type(kind.value_type))
    return to_arrow_type(kind)


def stored_partition_type(spec: PartitionSpec, schema: Schema, older: Iterable[Schema] = ()) -> StructType:
    """The type to read the partition tuples of a spec with.

    Under a transform that this version does not know, any type may have been stored: the field is ``unknown``, and
    its values are taken as the manifest has them. Sources that ``schema`` no longer has are looked up in ``older``.
    """
    typed = spec.partition_type(schema, older)
    return StructType(
        *(
            one if field.is_known else NestedField(one.field_id, one.name, UnknownType())
            for field, one in zip(spec.fields, typed.fields, strict=True)
        )
    )


@lru_cache(maxsize=64)
def entry_schema(format_version: int, partition_type: StructType) -> Schema:
    """The schema of a manifest as a writer of the version writes it. Raises ``UnsupportedFeature`` beyond version 3."""
    data_file = StructType(*_fields(DATA_FILE_FIELDS, _known(format_version), {PARTITION: partition_type}))
    return Schema(*_fields(ENTRY_FIELDS, format_version, {DATA_FILE: data_file}))


@lru_cache(maxsize=8)
def manifest_list_schema(format_version: int) -> Schema:
    """The schema of a manifest list as a writer of the version writes it. Raises ``UnsupportedFeature`` beyond 3."""
    summary = StructType(*_fields(FIELD_SUMMARY_FIELDS, _known(format_version), {}))
    return Schema(*_fields(MANIFEST_FILE_FIELDS, format_version, {PARTITIONS: ListType(508, summary, True)}))


def _known(format_version: int) -> int:
    if format_version not in FORMAT_VERSIONS:
        raise UnsupportedFeature(f"format version {format_version} is not supported (1, 2 and 3 are)")
    return format_version


def _fields(rules: tuple[FieldRule, ...], format_version: int, nested: Mapping[int, IcebergType]) -> list[NestedField]:
    return [
        NestedField(
            rule.field_id,
            rule.name,
            nested.get(rule.field_id, rule.type),
            required=rule.requirement(format_version) == "required",
        )
        for rule in rules
        if rule.written and rule.requirement(format_version) is not None
    ]

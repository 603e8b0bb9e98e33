"""The field ids above every user's: metadata columns and the columns of delete files.

Spec: Reserved Field IDs.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Final

from icefield.types.nested import NestedField, StructType
from icefield.types.primitive import BooleanType, IntegerType, LongType, StringType

MAX_USER_FIELD_ID: Final = 2_147_483_447
"""The highest id that a column of a table may have: 2^31 - 1 - 200."""

FILE: Final = NestedField(2_147_483_646, "_file", StringType(), True, "Path of the file in which a row is stored")
POS: Final = NestedField(2_147_483_645, "_pos", LongType(), True, "Position of a row in its file, from 0")
DELETED: Final = NestedField(2_147_483_644, "_deleted", BooleanType(), True, "Whether the row has been deleted")
SPEC_ID: Final = NestedField(2_147_483_643, "_spec_id", IntegerType(), True, "Partition spec of the row's file")
PARTITION: Final = NestedField(2_147_483_642, "_partition", StructType(), False, "Partition of the row")

DELETE_FILE_PATH: Final = NestedField(2_147_483_546, "file_path", StringType(), True, "Data file a delete is for")
DELETE_FILE_POS: Final = NestedField(2_147_483_545, "pos", LongType(), True, "Position of a deleted row, from 0")
DELETE_FILE_ROW: Final = NestedField(2_147_483_544, "row", StructType(), False, "Deleted row")

CHANGE_TYPE: Final = NestedField(
    2_147_483_543, "_change_type", StringType(), True, "INSERT, DELETE, UPDATE_BEFORE or UPDATE_AFTER"
)
CHANGE_ORDINAL: Final = NestedField(2_147_483_542, "_change_ordinal", IntegerType(), True, "Order of the change")
COMMIT_SNAPSHOT_ID: Final = NestedField(
    2_147_483_541, "_commit_snapshot_id", LongType(), True, "Snapshot that made the change"
)
ROW_ID: Final = NestedField(2_147_483_540, "_row_id", LongType(), False, "Identity of the row across snapshots")
LAST_UPDATED_SEQUENCE_NUMBER: Final = NestedField(
    2_147_483_539, "_last_updated_sequence_number", LongType(), False, "Sequence number that last changed the row"
)

RESERVED_FIELDS: Final = MappingProxyType(
    {
        field.field_id: field
        for field in (
            FILE, POS, DELETED, SPEC_ID, PARTITION, DELETE_FILE_PATH, DELETE_FILE_POS, DELETE_FILE_ROW, CHANGE_TYPE,
            CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER,
        )
    }
)  # fmt: skip
"""Every reserved field by id."""

CHANGELOG_IDS: Final = frozenset({CHANGE_TYPE.field_id, CHANGE_ORDINAL.field_id, COMMIT_SNAPSHOT_ID.field_id})
"""The columns that only the rows of a changelog have."""

METADATA_COLUMNS: Final = MappingProxyType(
    {field.name: field for field in RESERVED_FIELDS.values() if field.name.startswith("_")}
)
"""The metadata columns that every table has in addition to its own columns, by name."""


def is_reserved_id(field_id: int) -> bool:
    """Whether no user's column may have that id."""
    return field_id > MAX_USER_FIELD_ID


def partition_field(partition_type: StructType) -> NestedField:
    """``_partition`` with the fields of a table's partition specs together."""
    return replace(PARTITION, field_type=partition_type)

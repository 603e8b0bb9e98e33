"""Manifests and manifest lists: read, written and cached in columns."""

from icefield.manifest.cache import FetchedManifest, clear_caches
from icefield.manifest.columns import ALL_COLUMNS, COLUMN_TYPES, PLAN_COLUMNS
from icefield.manifest.data_file import DataFile, DataFileContent, EntryStatus, files_of_columns
from icefield.manifest.decoded import ManifestRequest, resize_caches
from icefield.manifest.encoding import data_file_columns
from icefield.manifest.entries import ManifestEntries
from icefield.manifest.list_writer import assign_row_ids, counted, write_manifest_list
from icefield.manifest.manifest_file import UNASSIGNED, FieldSummary, ManifestContent, ManifestFile
from icefield.manifest.manifest_list import ManifestList, read_manifest_list
from icefield.manifest.reader import ManifestReader, read_manifest
from icefield.manifest.schemas import (
    COLUMN_SIZES,
    CONTENT,
    CONTENT_OFFSET,
    CONTENT_SIZE,
    EQUALITY_IDS,
    FILE_FORMAT,
    FILE_PATH,
    FILE_SEQUENCE_NUMBER,
    FILE_SIZE,
    FIRST_ROW_ID,
    LOWER_BOUNDS,
    NAN_VALUE_COUNTS,
    NULL_VALUE_COUNTS,
    PARTITION,
    RECORD_COUNT,
    REFERENCED_DATA_FILE,
    SEQUENCE_NUMBER,
    SNAPSHOT_ID,
    SORT_ORDER_ID,
    SPLIT_OFFSETS,
    STATUS,
    UPPER_BOUNDS,
    VALUE_COUNTS,
    entry_schema,
    manifest_list_schema,
    stored_partition_type,
)
from icefield.manifest.statistics import map_parts
from icefield.manifest.writer import ManifestWriter

__all__ = [
    "ALL_COLUMNS",
    "COLUMN_SIZES",
    "COLUMN_TYPES",
    "CONTENT",
    "CONTENT_OFFSET",
    "CONTENT_SIZE",
    "EQUALITY_IDS",
    "FILE_FORMAT",
    "FILE_PATH",
    "FILE_SEQUENCE_NUMBER",
    "FILE_SIZE",
    "FIRST_ROW_ID",
    "LOWER_BOUNDS",
    "NAN_VALUE_COUNTS",
    "NULL_VALUE_COUNTS",
    "PARTITION",
    "PLAN_COLUMNS",
    "RECORD_COUNT",
    "REFERENCED_DATA_FILE",
    "SEQUENCE_NUMBER",
    "SNAPSHOT_ID",
    "SORT_ORDER_ID",
    "SPLIT_OFFSETS",
    "STATUS",
    "UNASSIGNED",
    "UPPER_BOUNDS",
    "VALUE_COUNTS",
    "DataFile",
    "DataFileContent",
    "EntryStatus",
    "FetchedManifest",
    "FieldSummary",
    "ManifestContent",
    "ManifestEntries",
    "ManifestFile",
    "ManifestList",
    "ManifestReader",
    "ManifestRequest",
    "ManifestWriter",
    "assign_row_ids",
    "clear_caches",
    "counted",
    "data_file_columns",
    "entry_schema",
    "files_of_columns",
    "manifest_list_schema",
    "map_parts",
    "read_manifest",
    "read_manifest_list",
    "resize_caches",
    "stored_partition_type",
    "write_manifest_list",
]

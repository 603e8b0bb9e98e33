"""Manifests and manifest lists: read, written and cached in columns."""

from typing import TYPE_CHECKING

from icefield.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from icefield.manifest.cache import FetchedManifest as FetchedManifest
    from icefield.manifest.cache import clear_caches as clear_caches
    from icefield.manifest.columns import ALL_COLUMNS as ALL_COLUMNS
    from icefield.manifest.columns import COLUMN_TYPES as COLUMN_TYPES
    from icefield.manifest.columns import PLAN_COLUMNS as PLAN_COLUMNS
    from icefield.manifest.data_file import DataFile as DataFile
    from icefield.manifest.data_file import DataFileContent as DataFileContent
    from icefield.manifest.data_file import EntryStatus as EntryStatus
    from icefield.manifest.data_file import files_of_columns as files_of_columns
    from icefield.manifest.decoded import ManifestRequest as ManifestRequest
    from icefield.manifest.decoded import resize_caches as resize_caches
    from icefield.manifest.encoding import data_file_columns as data_file_columns
    from icefield.manifest.entries import ManifestEntries as ManifestEntries
    from icefield.manifest.list_writer import assign_row_ids as assign_row_ids
    from icefield.manifest.list_writer import counted as counted
    from icefield.manifest.list_writer import write_manifest_list as write_manifest_list
    from icefield.manifest.manifest_file import UNASSIGNED as UNASSIGNED
    from icefield.manifest.manifest_file import FieldSummary as FieldSummary
    from icefield.manifest.manifest_file import ManifestContent as ManifestContent
    from icefield.manifest.manifest_file import ManifestFile as ManifestFile
    from icefield.manifest.manifest_list import ManifestList as ManifestList
    from icefield.manifest.manifest_list import read_manifest_list as read_manifest_list
    from icefield.manifest.reader import ManifestReader as ManifestReader
    from icefield.manifest.reader import read_manifest as read_manifest
    from icefield.manifest.schemas import COLUMN_SIZES as COLUMN_SIZES
    from icefield.manifest.schemas import CONTENT as CONTENT
    from icefield.manifest.schemas import CONTENT_OFFSET as CONTENT_OFFSET
    from icefield.manifest.schemas import CONTENT_SIZE as CONTENT_SIZE
    from icefield.manifest.schemas import EQUALITY_IDS as EQUALITY_IDS
    from icefield.manifest.schemas import FILE_FORMAT as FILE_FORMAT
    from icefield.manifest.schemas import FILE_PATH as FILE_PATH
    from icefield.manifest.schemas import FILE_SEQUENCE_NUMBER as FILE_SEQUENCE_NUMBER
    from icefield.manifest.schemas import FILE_SIZE as FILE_SIZE
    from icefield.manifest.schemas import FIRST_ROW_ID as FIRST_ROW_ID
    from icefield.manifest.schemas import KEY_METADATA as KEY_METADATA
    from icefield.manifest.schemas import LOWER_BOUNDS as LOWER_BOUNDS
    from icefield.manifest.schemas import NAN_VALUE_COUNTS as NAN_VALUE_COUNTS
    from icefield.manifest.schemas import NULL_VALUE_COUNTS as NULL_VALUE_COUNTS
    from icefield.manifest.schemas import PARTITION as PARTITION
    from icefield.manifest.schemas import RECORD_COUNT as RECORD_COUNT
    from icefield.manifest.schemas import REFERENCED_DATA_FILE as REFERENCED_DATA_FILE
    from icefield.manifest.schemas import SEQUENCE_NUMBER as SEQUENCE_NUMBER
    from icefield.manifest.schemas import SNAPSHOT_ID as SNAPSHOT_ID
    from icefield.manifest.schemas import SORT_ORDER_ID as SORT_ORDER_ID
    from icefield.manifest.schemas import SPLIT_OFFSETS as SPLIT_OFFSETS
    from icefield.manifest.schemas import STATUS as STATUS
    from icefield.manifest.schemas import UPPER_BOUNDS as UPPER_BOUNDS
    from icefield.manifest.schemas import VALUE_COUNTS as VALUE_COUNTS
    from icefield.manifest.schemas import entry_schema as entry_schema
    from icefield.manifest.schemas import manifest_list_schema as manifest_list_schema
    from icefield.manifest.schemas import stored_partition_type as stored_partition_type
    from icefield.manifest.statistics import map_parts as map_parts
    from icefield.manifest.writer import ManifestWriter as ManifestWriter

__getattr__, __dir__ = lazy_names(__name__)

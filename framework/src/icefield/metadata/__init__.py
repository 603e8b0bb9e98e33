"""Table metadata: decoding, encoding, and changes made of small updates."""

from icefield.limits import MAX_METADATA_BYTES
from icefield.metadata.decode import SUPPORTED_FORMAT_VERSIONS, decode_metadata
from icefield.metadata.deferred_snapshots import with_deferred_snapshots
from icefield.metadata.encode import encode_metadata
from icefield.metadata.entries import (
    BlobMetadata,
    EncryptedKey,
    MetadataLogEntry,
    PartitionStatisticsFile,
    SnapshotLogEntry,
    StatisticsFile,
)
from icefield.metadata.inflation import inflated
from icefield.metadata.json_array import JsonArray
from icefield.metadata.metadata_log import with_metadata_log
from icefield.metadata.new import new_table_metadata
from icefield.metadata.refs import MAIN_BRANCH
from icefield.metadata.requirements import TableRequirement
from icefield.metadata.snapshots import Operation, Snapshot
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates import TableUpdate, apply_updates
from icefield.metadata.views import (
    ViewHistoryEntry,
    ViewMetadata,
    ViewRepresentation,
    ViewRequirement,
    ViewUpdate,
    ViewVersion,
    apply_view_updates,
    decode_view_metadata,
    encode_view_metadata,
    new_view_metadata,
    view_creation_updates,
)
from icefield.metadata.wire import (
    requirements_from_json,
    requirements_to_json,
    updates_from_json,
    updates_to_json,
    view_requirements_from_json,
    view_requirements_to_json,
    view_updates_from_json,
    view_updates_to_json,
)

__all__ = [
    "MAIN_BRANCH",
    "MAX_METADATA_BYTES",
    "SUPPORTED_FORMAT_VERSIONS",
    "BlobMetadata",
    "EncryptedKey",
    "JsonArray",
    "MetadataLogEntry",
    "Operation",
    "PartitionStatisticsFile",
    "Snapshot",
    "SnapshotLogEntry",
    "StatisticsFile",
    "TableMetadata",
    "TableRequirement",
    "TableUpdate",
    "ViewHistoryEntry",
    "ViewMetadata",
    "ViewRepresentation",
    "ViewRequirement",
    "ViewUpdate",
    "ViewVersion",
    "apply_updates",
    "apply_view_updates",
    "decode_metadata",
    "decode_view_metadata",
    "encode_metadata",
    "encode_view_metadata",
    "inflated",
    "new_table_metadata",
    "new_view_metadata",
    "requirements_from_json",
    "requirements_to_json",
    "updates_from_json",
    "updates_to_json",
    "view_creation_updates",
    "view_requirements_from_json",
    "view_requirements_to_json",
    "view_updates_from_json",
    "view_updates_to_json",
    "with_deferred_snapshots",
    "with_metadata_log",
]

"""Upkeep: expiry of snapshots, manifests and delete files rewritten, and statistics of tables and partitions."""

from icefield.maintenance.compaction import RewriteDataFilesResult, RewrittenGroup
from icefield.maintenance.deletes import (
    ConvertEqualityDeletesResult,
    RemoveDanglingDeletesResult,
    RewriteDeletesResult,
)
from icefield.maintenance.expiry import ExpireSnapshotsResult
from icefield.maintenance.maintenance_table import MaintenanceTable
from icefield.maintenance.manifests import RewriteManifestsResult
from icefield.maintenance.owned import OwnedFiles, folders_of
from icefield.maintenance.paths import RewriteTablePathResult

__all__ = [
    "ConvertEqualityDeletesResult",
    "ExpireSnapshotsResult",
    "MaintenanceTable",
    "OwnedFiles",
    "RemoveDanglingDeletesResult",
    "RewriteDataFilesResult",
    "RewriteDeletesResult",
    "RewriteManifestsResult",
    "RewriteTablePathResult",
    "RewrittenGroup",
    "folders_of",
]

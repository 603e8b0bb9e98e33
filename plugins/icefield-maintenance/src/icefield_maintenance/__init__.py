"""Maintenance of tables: compaction, expiry, orphan files, rewrites of manifests and delete files, statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import lazy_names

if TYPE_CHECKING:
    from icefield_maintenance.catalog_branches import BranchDifference, CatalogBranches
    from icefield_maintenance.compaction import RewriteDataFilesResult, RewrittenGroup
    from icefield_maintenance.compaction.strategies import Ordering, OrderingRequest
    from icefield_maintenance.deletes import (
        ConvertEqualityDeletesResult,
        RemoveDanglingDeletesResult,
        RewriteDeletesResult,
    )
    from icefield_maintenance.erasure import EraseResult
    from icefield_maintenance.expiry import ExpireSnapshotsResult
    from icefield_maintenance.hookspecs import CompactionStrategy, HealthRules
    from icefield_maintenance.maintenance_table import MaintenanceTable
    from icefield_maintenance.manifests import RewriteManifestsResult
    from icefield_maintenance.operation_options import OperationOption, options_of
    from icefield_maintenance.options import (
        OPERATIONS,
        ConvertDeletesOptions,
        EraseOptions,
        ExpireOptions,
        PartitionStatsOptions,
        RemoveDanglingOptions,
        RemoveOrphansOptions,
        RewriteDeletesOptions,
        RewriteManifestsOptions,
        RewriteOptions,
        RewritePathOptions,
        TableStatsOptions,
    )
    from icefield_maintenance.paths import RewriteTablePathResult
    from icefield_maintenance.puffin_reader import PuffinReader
    from icefield_maintenance.versions import diff, rollback, undo

# Names are handed on lazily: the hooks are in this package, and each process that lists plugins imports them.
__getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "OPERATIONS",
    "BranchDifference",
    "CatalogBranches",
    "CompactionStrategy",
    "ConvertDeletesOptions",
    "ConvertEqualityDeletesResult",
    "EraseOptions",
    "EraseResult",
    "ExpireOptions",
    "ExpireSnapshotsResult",
    "HealthRules",
    "MaintenanceTable",
    "OperationOption",
    "Ordering",
    "OrderingRequest",
    "PartitionStatsOptions",
    "PuffinReader",
    "RemoveDanglingDeletesResult",
    "RemoveDanglingOptions",
    "RemoveOrphansOptions",
    "RewriteDataFilesResult",
    "RewriteDeletesOptions",
    "RewriteDeletesResult",
    "RewriteManifestsOptions",
    "RewriteManifestsResult",
    "RewriteOptions",
    "RewritePathOptions",
    "RewriteTablePathResult",
    "RewrittenGroup",
    "TableStatsOptions",
    "diff",
    "options_of",
    "rollback",
    "undo",
]

"""Maintenance of tables: compaction, expiry, orphan files, rewrites of manifests and delete files, statistics."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icefield_maintenance.compaction import RewriteDataFilesResult, RewrittenGroup
    from icefield_maintenance.compaction.strategies import Ordering, OrderingRequest
    from icefield_maintenance.deletes import (
        ConvertEqualityDeletesResult,
        RemoveDanglingDeletesResult,
        RewriteDeletesResult,
    )
    from icefield_maintenance.expiry import ExpireSnapshotsResult
    from icefield_maintenance.hookspecs import CompactionStrategy, HealthRules
    from icefield_maintenance.maintenance_table import MaintenanceTable
    from icefield_maintenance.manifests import RewriteManifestsResult
    from icefield_maintenance.operation_options import OperationOption, options_of
    from icefield_maintenance.options import (
        OPERATIONS,
        ConvertDeletesOptions,
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

# Names are handed on lazily: the hooks are in this package, and each process that lists plugins imports them.
_PUBLIC = {
    "CompactionStrategy": "icefield_maintenance.hookspecs",
    "ConvertDeletesOptions": "icefield_maintenance.options",
    "ConvertEqualityDeletesResult": "icefield_maintenance.deletes",
    "ExpireOptions": "icefield_maintenance.options",
    "ExpireSnapshotsResult": "icefield_maintenance.expiry",
    "HealthRules": "icefield_maintenance.hookspecs",
    "MaintenanceTable": "icefield_maintenance.maintenance_table",
    "OPERATIONS": "icefield_maintenance.options",
    "OperationOption": "icefield_maintenance.operation_options",
    "Ordering": "icefield_maintenance.compaction.strategies",
    "OrderingRequest": "icefield_maintenance.compaction.strategies",
    "PartitionStatsOptions": "icefield_maintenance.options",
    "RemoveDanglingDeletesResult": "icefield_maintenance.deletes",
    "RemoveDanglingOptions": "icefield_maintenance.options",
    "RemoveOrphansOptions": "icefield_maintenance.options",
    "RewriteDataFilesResult": "icefield_maintenance.compaction",
    "RewriteDeletesOptions": "icefield_maintenance.options",
    "RewriteDeletesResult": "icefield_maintenance.deletes",
    "RewriteManifestsOptions": "icefield_maintenance.options",
    "RewriteManifestsResult": "icefield_maintenance.manifests",
    "RewriteOptions": "icefield_maintenance.options",
    "RewritePathOptions": "icefield_maintenance.options",
    "RewriteTablePathResult": "icefield_maintenance.paths",
    "RewrittenGroup": "icefield_maintenance.compaction",
    "TableStatsOptions": "icefield_maintenance.options",
    "options_of": "icefield_maintenance.operation_options",
}

__all__ = [
    "OPERATIONS",
    "CompactionStrategy",
    "ConvertDeletesOptions",
    "ConvertEqualityDeletesResult",
    "ExpireOptions",
    "ExpireSnapshotsResult",
    "HealthRules",
    "MaintenanceTable",
    "OperationOption",
    "Ordering",
    "OrderingRequest",
    "PartitionStatsOptions",
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
    "options_of",
]


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'icefield_maintenance' has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""Maintenance of tables: compaction, expiry, orphan files, rewrites of manifests and delete files, statistics."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icefield_maintenance.compaction import RewriteDataFilesResult, RewrittenGroup
    from icefield_maintenance.deletes import (
        ConvertEqualityDeletesResult,
        RemoveDanglingDeletesResult,
        RewriteDeletesResult,
    )
    from icefield_maintenance.expiry import ExpireSnapshotsResult
    from icefield_maintenance.maintenance_table import MaintenanceTable
    from icefield_maintenance.manifests import RewriteManifestsResult
    from icefield_maintenance.paths import RewriteTablePathResult

# Names are handed on lazily: the hooks are in this package, and each process that lists plugins imports them.
_PUBLIC = {
    "ConvertEqualityDeletesResult": "icefield_maintenance.deletes",
    "ExpireSnapshotsResult": "icefield_maintenance.expiry",
    "MaintenanceTable": "icefield_maintenance.maintenance_table",
    "RemoveDanglingDeletesResult": "icefield_maintenance.deletes",
    "RewriteDataFilesResult": "icefield_maintenance.compaction",
    "RewriteDeletesResult": "icefield_maintenance.deletes",
    "RewriteManifestsResult": "icefield_maintenance.manifests",
    "RewriteTablePathResult": "icefield_maintenance.paths",
    "RewrittenGroup": "icefield_maintenance.compaction",
}

__all__ = [
    "ConvertEqualityDeletesResult",
    "ExpireSnapshotsResult",
    "MaintenanceTable",
    "RemoveDanglingDeletesResult",
    "RewriteDataFilesResult",
    "RewriteDeletesResult",
    "RewriteManifestsResult",
    "RewriteTablePathResult",
    "RewrittenGroup",
]


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'icefield_maintenance' has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""Upkeep: expiry of snapshots, manifests rewritten, and statistics of tables and of their partitions."""

from icefield.maintenance.expiry import ExpireSnapshotsResult
from icefield.maintenance.maintenance_table import MaintenanceTable
from icefield.maintenance.manifests import RewriteManifestsResult

__all__ = ["ExpireSnapshotsResult", "MaintenanceTable", "RewriteManifestsResult"]

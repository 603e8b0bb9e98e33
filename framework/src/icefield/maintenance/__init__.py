"""Upkeep: statistics of tables and of their partitions."""

from icefield.maintenance.maintenance_table import MaintenanceTable
from icefield.maintenance.manifests import RewriteManifestsResult

__all__ = ["MaintenanceTable", "RewriteManifestsResult"]

"""Upkeep: statistics of tables and of their partitions."""

from icefield.maintenance.maintenance_table import MaintenanceTable

__all__ = ["MaintenanceTable"]

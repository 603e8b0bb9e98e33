"""The Hive Metastore as a catalog for Icefield, and readers of its tables of Hive and Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import lazy_names

if TYPE_CHECKING:
    from icefield_hive.foreign_tables import HivePartition, HiveStorage, HiveTable, HiveTables

# Lazy names: each process that lists plugins imports this package for its hooks.
__getattr__, __dir__ = lazy_names(__name__)

__all__ = ["HivePartition", "HiveStorage", "HiveTable", "HiveTables"]

"""The Hive Metastore as a catalog for Icefield, and its tables of Hive and Spark for programs that import them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import lazy_names

if TYPE_CHECKING:
    from icefield_hive.foreign_tables import HivePartition, HiveStorage, HiveTable, HiveTables

# Names are handed on lazily: the hooks are in this package, and each process that lists plugins imports them.
__getattr__, __dir__ = lazy_names(__name__)

__all__ = ["HivePartition", "HiveStorage", "HiveTable", "HiveTables"]

"""Maintenance by policies: goals of tables, plans, leases, a record, and a simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import lazy_names

if TYPE_CHECKING:
    from icefield_maintenance.tend.commits import CommittedTables
    from icefield_maintenance.tend.costs import ScanCost
    from icefield_maintenance.tend.goals import Goals
    from icefield_maintenance.tend.outlook import TableOutlook, outlook_of
    from icefield_maintenance.tend.past import TendedOperation
    from icefield_maintenance.tend.planning import Decision
    from icefield_maintenance.tend.policy import Policy
    from icefield_maintenance.tend.runner import Tending

__getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CommittedTables",
    "Decision",
    "Goals",
    "Policy",
    "ScanCost",
    "TableOutlook",
    "TendedOperation",
    "Tending",
    "outlook_of",
]

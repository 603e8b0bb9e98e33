"""The health of a table: what the specification demands of it, looked at rule by rule, and repairs."""

from icefield.health.tables.examine import GroupOfChecks, examine_table
from icefield.health.tables.repair import RepairResult, RepairStep, repair_table
from icefield.health.tables.rules import Repair

__all__ = ["GroupOfChecks", "Repair", "RepairResult", "RepairStep", "examine_table", "repair_table"]

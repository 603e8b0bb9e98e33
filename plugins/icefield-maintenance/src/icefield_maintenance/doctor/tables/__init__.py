"""The health of a table: what the specification demands of it, looked at rule by rule, and repairs."""

from icefield_maintenance.doctor.tables.examine import GroupOfChecks, examine_table
from icefield_maintenance.doctor.tables.repair import RepairResult, RepairStep, repair_table
from icefield_maintenance.doctor.tables.rules import Repair

__all__ = ["GroupOfChecks", "Repair", "RepairResult", "RepairStep", "examine_table", "repair_table"]

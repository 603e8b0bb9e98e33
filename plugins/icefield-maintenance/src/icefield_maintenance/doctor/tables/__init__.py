"""The health of a table: checks of the rules of the specification, and repairs."""

from icefield_maintenance.doctor.tables.examine import GroupOfChecks, examine_table
from icefield_maintenance.doctor.tables.repair import RepairResult, RepairStep, repair_table
from icefield_maintenance.doctor.tables.rules import Repair

__all__ = ["GroupOfChecks", "Repair", "RepairResult", "RepairStep", "examine_table", "repair_table"]

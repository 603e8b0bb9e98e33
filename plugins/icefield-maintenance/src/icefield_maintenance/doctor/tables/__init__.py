"""The health of a table: checks of the rules of the specification, and repairs."""

from icefield_maintenance.doctor.tables.examine import GroupOfChecks, examine_table
from icefield_maintenance.doctor.tables.groups import RuleGroup
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.repair import RepairResult, RepairStep, repair_table
from icefield_maintenance.doctor.tables.rules import Repair, Rule
from icefield_maintenance.doctor.tables.subject import Subject

__all__ = [
    "GroupOfChecks",
    "Ledger",
    "Repair",
    "RepairResult",
    "RepairStep",
    "Rule",
    "RuleGroup",
    "Subject",
    "examine_table",
    "repair_table",
]

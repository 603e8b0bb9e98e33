"""The doctor: it tests plugins, catalogs and storage by using them, and gives advice.

``examine`` tests a catalog and everything that it depends on. ``examine_storage`` tests one file system, so that the
author of a plugin can point it at a real store. Both remove everything that they create. ``examine_table`` checks the
files of a table, and changes none; ``repair_table`` repairs them where possible.
"""

from icefield_maintenance.doctor.catalogs import examine, examine_catalog
from icefield_maintenance.doctor.commits import CommitExamination
from icefield_maintenance.doctor.findings import Finding, Result
from icefield_maintenance.doctor.plugins import examine_plugins
from icefield_maintenance.doctor.storage import examine_storage
from icefield_maintenance.doctor.tables import (
    GroupOfChecks,
    Ledger,
    Repair,
    RepairResult,
    RepairStep,
    Rule,
    RuleGroup,
    Subject,
    examine_table,
    repair_table,
)

__all__ = [
    "CommitExamination",
    "Finding",
    "GroupOfChecks",
    "Ledger",
    "Repair",
    "RepairResult",
    "RepairStep",
    "Result",
    "Rule",
    "RuleGroup",
    "Subject",
    "examine",
    "examine_catalog",
    "examine_plugins",
    "examine_storage",
    "examine_table",
    "repair_table",
]

"""The doctor: what plugins, catalogs and storage really do, found out by trying, with what to do about it.

``examine`` looks at everything that a catalog rests on; ``examine_storage`` at one file system, so that the author of a
plugin can point it at a real store. Nothing that is made stays. ``examine_table`` looks at a table's files, and changes
none; ``repair_table`` puts right what can be.
"""

from icefield_maintenance.doctor.catalogs import examine, examine_catalog
from icefield_maintenance.doctor.commits import CommitExamination
from icefield_maintenance.doctor.findings import Finding, Result
from icefield_maintenance.doctor.plugins import examine_plugins
from icefield_maintenance.doctor.storage import examine_storage
from icefield_maintenance.doctor.tables import (
    GroupOfChecks,
    Repair,
    RepairResult,
    RepairStep,
    examine_table,
    repair_table,
)

__all__ = [
    "CommitExamination",
    "Finding",
    "GroupOfChecks",
    "Repair",
    "RepairResult",
    "RepairStep",
    "Result",
    "examine",
    "examine_catalog",
    "examine_plugins",
    "examine_storage",
    "examine_table",
    "repair_table",
]

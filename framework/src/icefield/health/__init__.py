"""Health: what plugins, catalogs and storage really do, found out by trying, with what to do about it.

``examine`` looks at everything that a catalog rests on; ``examine_storage`` at one file system, so that the author of a
plugin can point it at a real store. Nothing that is made stays.
"""

from icefield.health.catalogs import examine, examine_catalog
from icefield.health.commits import CommitExamination
from icefield.health.findings import Finding, Result
from icefield.health.plugins import examine_plugins
from icefield.health.storage import examine_storage

__all__ = [
    "CommitExamination",
    "Finding",
    "Result",
    "examine",
    "examine_catalog",
    "examine_plugins",
    "examine_storage",
]

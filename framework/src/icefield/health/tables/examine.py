"""The examination of a table: groups of checks, one after another."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from icefield.catalog import Table
from icefield.errors import IcefieldError
from icefield.health.findings import Finding, Result
from icefield.health.tables.entry_checks import examine_entries
from icefield.health.tables.file_checks import examine_files
from icefield.health.tables.manifest_checks import examine_manifests
from icefield.health.tables.metadata_checks import examine_metadata
from icefield.health.tables.row_checks import examine_rows
from icefield.health.tables.subject import Subject
from icefield.health.tables.upkeep_checks import examine_upkeep

_GROUPS = {
    "metadata": examine_metadata,
    "manifests": examine_manifests,
    "entries": examine_entries,
    "files": examine_files,
    "rows": examine_rows,
    "upkeep": examine_upkeep,
}
SAMPLE = 16
"""Data files and deletion vectors that are read, unless all of them are asked for."""


@dataclass(frozen=True, slots=True)
class GroupOfChecks:
    """What one group of checks found, and how long it took, in seconds."""

    name: str
    findings: tuple[Finding, ...]
    seconds: float


def examine_table(table: Table, *, whole: bool = False, sample: int = SAMPLE) -> Iterator[GroupOfChecks]:
    """Check a table against the specification, group by group; nothing is changed.

    Metadata, every manifest list, and the manifests at the heads of branches and tags are looked at whole; every live
    file is asked for; ``sample`` data files and as many deletion vectors are read and compared with what manifests say
    of them, all of them with ``whole``. Raises nothing: whatever goes wrong is a finding.
    """
    subject = Subject(table.metadata, table.io, table.metadata_location, None if whole else sample)
    for name, examination in _GROUPS.items():
        started = time.perf_counter()
        try:
            findings = tuple(examination(subject))
        except IcefieldError as error:
            findings = (Finding(name, Result.FAILED, str(error), "see what this names", table.metadata_location),)
        yield GroupOfChecks(name, findings, time.perf_counter() - started)

"""The examination of a table: groups of checks, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from icefield import Table
from icefield.errors import IcefieldError
from icefield.toolkit import without_credentials

from icefield_maintenance.doctor.findings import Finding, Result
from icefield_maintenance.doctor.tables import (
    entry_checks,
    file_checks,
    manifest_checks,
    metadata_checks,
    row_checks,
    upkeep_checks,
)
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.rules import Rule
from icefield_maintenance.doctor.tables.subject import Subject

Examination = Callable[[Subject, Ledger], None]
GROUPS: Final[Mapping[str, tuple[tuple[Rule, ...], Examination]]] = {
    "metadata": (metadata_checks.RULES, metadata_checks.examine_metadata),
    "manifests": (manifest_checks.RULES, manifest_checks.examine_manifests),
    "entries": (entry_checks.RULES, entry_checks.examine_entries),
    "files": (file_checks.RULES, file_checks.examine_files),
    "rows": (row_checks.RULES, row_checks.examine_rows),
    "upkeep": (upkeep_checks.RULES, upkeep_checks.examine_upkeep),
}
SAMPLE = 16
"""Data files, deletion vectors and other delete files that are read, unless all of them are asked for."""


@dataclass(frozen=True, slots=True)
class GroupOfChecks:
    """What one group of checks found, and how long it took, in seconds.

    ``check_seconds``: how long each check of it took, by name. What several checks need is read once: that counts for
    the group only.
    """

    name: str
    findings: tuple[Finding, ...]
    seconds: float
    check_seconds: Mapping[str, float] = field(default_factory=dict)


def examine_table(table: Table, *, whole: bool = False, sample: int = SAMPLE) -> Iterator[GroupOfChecks]:
    """Check a table against the specification, group by group; nothing is changed.

    Metadata, every manifest list, and the manifests at the heads of branches and tags are looked at whole; every live
    file is asked for; ``sample`` data files, and as many deletion vectors and other delete files, are read and compared
    with what manifests say of them, all of them with ``whole``. Raises nothing: whatever goes wrong is a finding.
    """
    yield from examined(Subject(table.metadata, table.io, table.metadata_location, None if whole else sample))


def examined(subject: Subject, mended: frozenset[tuple[str, str]] = frozenset()) -> Iterator[GroupOfChecks]:
    """The same of a subject; what is said of ``mended`` is passed over: names of rules, each with a file."""
    for name, (rules, examination) in GROUPS.items():
        started = time.perf_counter()
        ledger = Ledger(rules, mended)
        stopped = stop_of(name, examination, subject, ledger)
        findings = tuple(ledger.findings())
        if stopped is not None:
            # What it did not come to is not known to be kept.
            findings = (*(finding for finding in findings if finding.result is not Result.OK), stopped)
        yield GroupOfChecks(name, findings, time.perf_counter() - started, ledger.seconds())


def looked_at(rules: Collection[Rule], subject: Subject) -> Ledger:
    """What breaks some rules, and the others of their groups."""
    wanted = {name: group for name, group in GROUPS.items() if not set(rules).isdisjoint(group[0])}
    ledger = Ledger([rule for group, _ in wanted.values() for rule in group])
    for name, (_, look) in wanted.items():
        stop_of(name, look, subject, ledger)  # what kept it from its end is said by an examination of everything
    return ledger


def stop_of(name: str, examination: Examination, subject: Subject, ledger: Ledger) -> Finding | None:
    """Examine, and give what kept the group from its end; None where it came there. Raises nothing."""
    try:
        examination(subject, ledger)
    except IcefieldError as error:
        found, advice = str(error), "see what this names"
    except Exception as error:  # what a damaged file made of the code that reads it, or an error of a plugin
        found = f"{type(error).__name__}: {error}"
        advice = "report it: whatever a table holds, none but Icefield's own errors may come of it"
    else:
        return None
    found = without_credentials(found, subject.io.properties)
    return Finding(name, Result.FAILED, found, advice, subject.metadata_location)

"""The examination of a table: groups of checks, one after another."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from icefield import Table
from icefield.errors import IcefieldError
from icefield.toolkit import without_credentials

from icefield_maintenance.doctor.findings import Finding, Result
from icefield_maintenance.doctor.tables.groups import RuleGroup, groups_of, provided
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.rules import Rule
from icefield_maintenance.doctor.tables.subject import Subject

SAMPLE = 16
"""The default number of data files, of deletion vectors and of other delete files to read."""


@dataclass(frozen=True, slots=True)
class GroupOfChecks:
    """The findings of one group of checks, and its duration in seconds.

    ``check_seconds`` is the duration of each check, by name. Reads that several checks share count for the group only.
    """

    name: str
    findings: tuple[Finding, ...]
    seconds: float
    check_seconds: Mapping[str, float] = field(default_factory=dict)


def examine_table(table: Table, *, whole: bool = False, sample: int = SAMPLE) -> Iterator[GroupOfChecks]:
    """Check a table against the specification, group by group; nothing is changed.

    The metadata, every manifest list, and the manifests at the heads of branches and tags are checked completely, and
    so are existence and size of every live file. ``sample`` data files, and as many deletion vectors and other delete
    files, are read and compared with their manifest entries; ``whole`` reads all of them. Raises nothing: each problem
    is a finding.
    """
    yield from examined(Subject(table.metadata, table.io, table.metadata_location, None if whole else sample))


def examined(subject: Subject, mended: frozenset[tuple[str, str]] = frozenset()) -> Iterator[GroupOfChecks]:
    """Check a subject, group by group. ``mended`` names rules, each with a file: these breaches are left out."""
    found = [*provided(subject.io.plugins)]
    if not found:
        yield _unexamined("rules", "no plugin of the catalog provides rules for tables", "open it with all plugins")
    for name, group in found:
        if not isinstance(group, RuleGroup):
            observed, _, advice = str(group).partition("; ")
            yield _unexamined(name, observed, advice or "report it to the author of the plugin")
            continue
        if group.applies is not None and not group.applies(subject):
            continue
        started = time.perf_counter()
        ledger = Ledger(group.rules, mended)
        stopped = stop_of(name, group, subject, ledger)
        findings = tuple(ledger.findings())
        if stopped is not None:
            # The group stopped early, so that no rule is known to hold.
            findings = (*(finding for finding in findings if finding.result is not Result.OK), stopped)
        yield GroupOfChecks(name, findings, time.perf_counter() - started, ledger.seconds())


def _unexamined(name: str, found: str, advice: str) -> GroupOfChecks:
    return GroupOfChecks(name, (Finding(name, Result.FAILED, found, advice),), 0.0)


def looked_at(rules: Collection[Rule], subject: Subject) -> Ledger:
    """The breaches of some rules, and of the other rules in their groups."""
    groups = groups_of(subject.io.plugins)
    wanted = {name: group for name, group in groups.items() if not set(rules).isdisjoint(group.rules)}
    ledger = Ledger([rule for group in wanted.values() for rule in group.rules])
    for name, group in wanted.items():
        stop_of(name, group, subject, ledger)  # a full examination reports why a group stopped
    return ledger


def stop_of(name: str, group: RuleGroup, subject: Subject, ledger: Ledger) -> Finding | None:
    """Run a group of checks. Return the error that stopped it as a finding, or None. Raises nothing."""
    try:
        group.examine(subject, ledger)
    except IcefieldError as error:
        found, advice = str(error), "see what this names"
    except Exception as error:  # a damaged file broke the code that reads it, or a plugin failed
        found = f"{type(error).__name__}: {error}"
        advice = "report it: whatever a table holds, none but Icefield's own errors may come of it"
    else:
        return None
    found = without_credentials(found, subject.io.properties)
    return Finding(name, Result.FAILED, found, advice, subject.metadata_location)

"""Repairs of a table: each is an ordinary commit, safe beside other writers, and never invents lost data."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from icefield import Table
from icefield.errors import CommitStateUnknown, IcefieldError, InvalidArgument, NotSupportedByCatalog
from icefield.metadata import MAIN_BRANCH
from icefield.toolkit import html_of, short_repr

from icefield_maintenance.doctor.findings import Finding, Result
from icefield_maintenance.doctor.tables import rules
from icefield_maintenance.doctor.tables.examine import SAMPLE, examined, looked_at
from icefield_maintenance.doctor.tables.groups import rules_with
from icefield_maintenance.doctor.tables.makers import MAKERS, Work
from icefield_maintenance.doctor.tables.rules import BY_NAME_ONLY, Repair
from icefield_maintenance.doctor.tables.subject import Subject


@dataclass(frozen=True, slots=True)
class RepairStep:
    """One repair of one branch, or its plan with ``dry_run``; ``branch`` is empty for the table as a whole.

    ``rules`` are the broken rules, ``locations`` the files that broke them. ``failed`` says why the repair failed, or
    would fail: mostly because something else is broken, too.
    """

    repair: Repair
    branch: str
    rules: tuple[str, ...]
    locations: tuple[str, ...]
    dry_run: bool
    failed: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class RepairResult:
    """The repairs, and the problems that are left in a later examination; with ``dry_run``, those it would leave."""

    steps: tuple[RepairStep, ...]
    left: tuple[Finding, ...]
    dry_run: bool

    __repr__ = short_repr
    _repr_html_ = html_of


def repair_table(
    table: Table,
    repairs: Collection[Repair] | None = None,
    *,
    dry_run: bool = True,
    whole: bool = False,
    sample: int = SAMPLE,
) -> RepairResult:
    """Repair the problems that an examination finds and ``repairs`` cover; a dry run by default.

    The default is every repair, except for repairs that shut out older readers or give up rows, deletes or history:
    ``UPGRADE``, ``REWRITE_PARTITIONS``, ``EXPIRE_SNAPSHOTS`` and ``FORGET_MISSING_FILES`` must be named. Each repair of
    a branch is one commit, checked against concurrent commits; readable rows stay the same. Repairs of data files
    cover the files that the examination reads: ``sample`` files, or all with ``whole``. Tags are never changed.

    Each remaining finding names its repair in ``repair``, or says in ``no_repair`` why there is none. Raises
    ``InvalidArgument`` for an unknown repair, ``NotSupportedByCatalog`` for a table without a catalog unless it is a
    dry run, and ``CommitStateUnknown``. If a repair fails with another error, its step states the error, and the
    remaining repairs continue.
    """
    chosen = frozenset(Repair) - BY_NAME_ONLY if repairs is None else frozenset(repairs)
    for each in chosen:
        if not isinstance(each, Repair):
            raise InvalidArgument(f"a repair is one of {', '.join(known.name for known in Repair)}, not {each!r}")
    run = _Run(table, None if whole else sample, dry_run)
    steps = tuple(step for repair in Repair if repair in chosen for step in run.steps(repair))
    found = examined(run.subject(), run.planned(steps) if dry_run else frozenset())
    left = [finding for group in found for finding in group.findings]
    return RepairResult(steps, tuple(each for each in left if each.result not in (Result.OK, Result.SKIPPED)), dry_run)


_OF_TABLE: Final = frozenset(
    {
        Repair.REWRITE_METADATA,
        Repair.REMOVE_STATISTICS,
        Repair.UPGRADE,
        Repair.REWRITE_DATA_FILES,
        Repair.CLUSTER_MANIFESTS,
        Repair.EXPIRE_SNAPSHOTS,
    }
)
"""Repairs of the table as a whole, not of each branch."""


@dataclass(frozen=True, slots=True)
class _Run:
    table: Table
    sample: int | None
    dry_run: bool

    def steps(self, repair: Repair) -> Iterator[RepairStep]:
        """Check the rules of a repair, and make it, on each branch that needs it."""
        for branch in [""] if repair in _OF_TABLE else self._branches():
            subject = self.subject((branch,) if branch else None)
            wanted = rules_with(repair, self.table.io.plugins)
            ledger = looked_at(wanted, subject)
            if ledger.locations(wanted):
                step = self._step(Work(self.table, repair, branch, subject, ledger))
                if step is not None:
                    yield step

    def _step(self, work: Work) -> RepairStep | None:
        """Make a repair, or only plan it in a dry run; None if it changes nothing."""
        maker, failed = MAKERS[work.repair], ""
        taken = work.named()
        try:
            taken = maker.take(work)
            if not taken or not (self.dry_run or maker.make(work, taken)):
                return None
        except (CommitStateUnknown, NotSupportedByCatalog):
            raise
        except IcefieldError as error:
            failed = str(error)
            if not self.dry_run:
                self.table.refresh()
        broken = [rule.name for rule in work.rules() if work.ledger.locations([rule]) & taken.keys()]
        return RepairStep(work.repair, work.branch, tuple(broken), tuple(sorted(taken)), self.dry_run, failed)

    def planned(self, steps: Collection[RepairStep]) -> frozenset[tuple[str, str]]:
        """Names of rules, each with a file that would no longer break the rule. Files of tags stay unrepaired."""
        tags = tuple(name for name, ref in self.table.metadata.refs.items() if not ref.is_branch)
        planned: set[tuple[str, str]] = set()
        for step in steps:
            if step.failed:
                continue
            kept: set[str] = set()
            if step.branch and tags:
                wanted = rules_with(step.repair, self.table.io.plugins)
                kept = looked_at(wanted, self.subject(tags)).locations(wanted)
            also = [rules.FILES_DAMAGED.name] if step.repair is Repair.FORGET_MISSING_FILES else []
            planned.update((name, file) for name in (*step.rules, *also) for file in step.locations if file not in kept)
        return frozenset(planned)

    def subject(self, refs: tuple[str, ...] | None = None) -> Subject:
        """The subject of an examination: the current table, or the heads of some of its branches and tags."""
        table = self.table
        return Subject(table.metadata, table.io, table.metadata_location, self.sample, refs)

    def _branches(self) -> list[str]:
        refs = self.table.metadata.refs
        return sorted(
            (name for name, ref in refs.items() if ref.is_branch), key=lambda name: (name != MAIN_BRANCH, name)
        )

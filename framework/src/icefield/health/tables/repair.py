"""Repairs of a table: each is one commit like any other, while others write, and makes up nothing that is lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from icefield.catalog import Table
from icefield.errors import CommitStateUnknown, IcefieldError, InvalidArgument, NotSupportedByCatalog
from icefield.health.findings import Finding, Result
from icefield.health.tables import rules
from icefield.health.tables.corrections import corrections
from icefield.health.tables.examine import GROUPS, SAMPLE, examine_table, stop_of
from icefield.health.tables.ledger import Ledger
from icefield.health.tables.mending import MendManifests
from icefield.health.tables.rules import BY_NAME_ONLY, Repair, Rule
from icefield.health.tables.subject import Subject
from icefield.maintenance.compaction import RewriteDataPolicy, rewrite_data_files
from icefield.maintenance.target import Target
from icefield.metadata.refs import MAIN_BRANCH
from icefield.metadata.updates import RemoveProperties, SetProperties
from icefield.transaction import DeleteFiles
from icefield.transaction.action import Action, ActionContext, Changes


@dataclass(frozen=True, slots=True)
class RepairStep:
    """One repair of one branch, done or with ``dry_run`` to be done; ``branch`` is empty for the table as a whole.

    ``rules`` are those that were broken, ``locations`` the files that broke them. ``failed`` says why the repair could
    not be made: mostly that something else is broken, too.
    """

    repair: Repair
    branch: str
    rules: tuple[str, ...]
    locations: tuple[str, ...]
    dry_run: bool
    failed: str = ""


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What was repaired, and what an examination finds afterwards; with ``dry_run``, what it finds that would stay."""

    steps: tuple[RepairStep, ...]
    left: tuple[Finding, ...]
    dry_run: bool


def repair_table(
    table: Table,
    repairs: Collection[Repair] | None = None,
    *,
    dry_run: bool = True,
    whole: bool = False,
    sample: int = SAMPLE,
) -> RepairResult:
    """Put right what an examination finds and ``repairs`` cover; a dry run unless asked to change it.

    By default every repair but those that shut out older readers or give up rows, deletes or history: ``UPGRADE``,
    ``REWRITE_PARTITIONS``, ``EXPIRE_SNAPSHOTS`` and ``FORGET_MISSING_FILES`` are made only where they are named. Each
    repair of a branch is one commit, checked against what others commit meanwhile; the rows that can be read stay the
    same. Of data files those are put right that the examination reads: ``sample`` of them, all with ``whole``. What
    tags name is never changed.

    What is left says in ``repair`` what would mend it, and otherwise in ``no_repair`` why nothing does. Raises
    ``InvalidArgument`` for what is no repair, ``NotSupportedByCatalog`` for a table without a catalog unless it is a
    dry run, and ``CommitStateUnknown``; a repair that fails otherwise is a step that says so, and the others are made
    all the same.
    """
    chosen = frozenset(Repair) - BY_NAME_ONLY if repairs is None else frozenset(repairs)
    for each in chosen:
        if not isinstance(each, Repair):
            raise InvalidArgument(f"a repair is one of {', '.join(known.name for known in Repair)}, not {each!r}")
    run = _Run(table, None if whole else sample, dry_run)
    steps = [step for repair in Repair if repair in chosen for step in run.steps(repair)]
    found = [finding for group in examine_table(table, whole=whole, sample=sample) for finding in group.findings]
    left = [finding for finding in found if finding.result not in (Result.OK, Result.SKIPPED)]
    planned = {name for step in steps for name in step.rules}
    return RepairResult(tuple(steps), tuple(each for each in left if not dry_run or each.check not in planned), dry_run)


_BY_REPAIR: Final[Mapping[Repair, tuple[Rule, ...]]] = {
    repair: tuple(rule for group, _ in GROUPS.values() for rule in group if rule.repair is repair) for repair in Repair
}
_CLAIMS: Final = (rules.SORT_ORDERS, rules.SORTED)
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
"""What is looked at once, not on each branch."""


@dataclass(slots=True)
class _Run:
    table: Table
    sample: int | None
    dry_run: bool

    def steps(self, repair: Repair) -> Iterator[RepairStep]:
        """Examine what a repair is for, and make it, on each branch that needs it."""
        for branch in [""] if repair in _OF_TABLE else self._branches():
            ledger = self._examined(repair, branch)
            broken = [rule for rule in _BY_REPAIR[repair] if ledger.locations([rule])]
            named = ledger.locations(broken)
            if not named:
                continue
            done, failed = self._done(repair, branch, ledger, named)
            if done:
                names = tuple(rule.name for rule in broken)
                yield RepairStep(repair, branch, names, tuple(sorted(done)), self.dry_run, failed)

    def _done(self, repair: Repair, branch: str, ledger: Ledger, named: set[str]) -> tuple[Collection[str], str]:
        """The files for which a repair was made, and why it failed."""
        if self.dry_run:
            return named, ""
        try:
            return _MAKERS[repair](self, branch, ledger), ""
        except (CommitStateUnknown, NotSupportedByCatalog):
            raise
        except IcefieldError as error:
            self.table.refresh()
            return named, str(error)

    def subject(self, branch: str) -> Subject:
        """What is examined of the table as it is now."""
        table = self.table
        return Subject(table.metadata, table.io, table.metadata_location, self.sample, branch or None)

    def _branches(self) -> list[str]:
        refs = self.table.metadata.refs
        return sorted(
            (name for name, ref in refs.items() if ref.is_branch), key=lambda name: (name != MAIN_BRANCH, name)
        )

    def _examined(self, repair: Repair, branch: str) -> Ledger:
        """What breaks the rules that a repair is for."""
        wanted = {name: group for name, group in GROUPS.items() if any(rule.repair is repair for rule in group[0])}
        ledger = Ledger([rule for group, _ in wanted.values() for rule in group])
        for name, (_, look) in wanted.items():
            stop_of(name, look, self.subject(branch), ledger)  # what kept it from its end is said of what is left
        return ledger

    def rewrite_metadata(self, branch: str, ledger: Ledger) -> Collection[str]:
        with self.table.transaction() as tx:
            _Touch(tx.stage).commit()
        return ledger.locations(_BY_REPAIR[Repair.REWRITE_METADATA])

    def remove_statistics(self, branch: str, ledger: Ledger) -> Collection[str]:
        named = ledger.locations(_BY_REPAIR[Repair.REMOVE_STATISTICS])
        metadata = self.table.metadata
        with self.table.transaction() as tx, tx.update_statistics() as update:
            for file in metadata.statistics:
                if file.statistics_path in named:
                    update.remove_statistics(file.snapshot_id)
            for each in metadata.partition_statistics:
                if each.statistics_path in named:
                    update.remove_partition_statistics(each.snapshot_id)
        return named

    def upgrade(self, branch: str, ledger: Ledger) -> Collection[str]:
        with self.table.transaction() as tx:
            tx.upgrade_table_version(3)
        return ledger.locations(_BY_REPAIR[Repair.UPGRADE])

    def rewrite_manifests(self, branch: str, ledger: Ledger) -> Collection[str]:
        named = ledger.locations(_BY_REPAIR[Repair.REWRITE_MANIFESTS])
        with self.table.transaction() as tx:
            MendManifests(tx.stage, named, {}, branch=branch).commit()
        return named

    def correct_entries(self, branch: str, ledger: Ledger) -> Collection[str]:
        claims = ledger.locations(_CLAIMS)
        wrong = ledger.locations([rule for rule in _BY_REPAIR[Repair.CORRECT_ENTRIES] if rule not in _CLAIMS])
        subject = self.subject(branch)
        found = corrections(subject, subject.data_files(), wrong, claims)
        if found:
            with self.table.transaction() as tx:
                MendManifests(tx.stage, (), found, branch=branch).commit()
        return found

    def rewrite_partitions(self, branch: str, ledger: Ledger) -> Collection[str]:
        named = ledger.locations([rules.PARTITION_VALUES])
        table = self.table
        rewrite_data_files(
            Target(table.metadata, table.io, table.transaction, table.metadata_location),
            RewriteDataPolicy(rewrite_all=True),
            branch=branch,
            only=pa.array(sorted(named), pa.string()),
        )
        return named

    def remove_dangling_deletes(self, branch: str, ledger: Ledger) -> Collection[str]:
        self.table.maintenance.remove_dangling_deletes(branch=branch)
        return ledger.locations([rules.DANGLING])

    def forget_missing_files(self, branch: str, ledger: Ledger) -> Collection[str]:
        """Only data files: without a delete file the rows that it deletes would be there again."""
        live = {file.file_path for file in self.subject(branch).data_files()}
        named = ledger.locations([rules.FILES_MISSING]) & live
        if named:
            with self.table.transaction() as tx:
                DeleteFiles(tx.stage, branch=branch).delete_file(*sorted(named)).commit()
        return named

    def rewrite_data_files(self, branch: str, ledger: Ledger) -> Collection[str]:
        threshold = 1 if ledger.locations([rules.DELETE_DEBT]) else None
        self.table.maintenance.rewrite_data_files(delete_file_threshold=threshold, remove_dangling_deletes=True)
        return ledger.locations(_BY_REPAIR[Repair.REWRITE_DATA_FILES])

    def cluster_manifests(self, branch: str, ledger: Ledger) -> Collection[str]:
        self.table.maintenance.rewrite_manifests()
        return ledger.locations([rules.SMALL_MANIFESTS])

    def expire_snapshots(self, branch: str, ledger: Ledger) -> Collection[str]:
        self.table.maintenance.expire_snapshots()
        return ledger.locations(_BY_REPAIR[Repair.EXPIRE_SNAPSHOTS])


_MAKERS: Final[Mapping[Repair, Callable[[_Run, str, Ledger], Collection[str]]]] = {
    Repair.REWRITE_METADATA: _Run.rewrite_metadata,
    Repair.REMOVE_STATISTICS: _Run.remove_statistics,
    Repair.UPGRADE: _Run.upgrade,
    Repair.REWRITE_MANIFESTS: _Run.rewrite_manifests,
    Repair.CORRECT_ENTRIES: _Run.correct_entries,
    Repair.REWRITE_PARTITIONS: _Run.rewrite_partitions,
    Repair.REMOVE_DANGLING_DELETES: _Run.remove_dangling_deletes,
    Repair.FORGET_MISSING_FILES: _Run.forget_missing_files,
    Repair.REWRITE_DATA_FILES: _Run.rewrite_data_files,
    Repair.CLUSTER_MANIFESTS: _Run.cluster_manifests,
    Repair.EXPIRE_SNAPSHOTS: _Run.expire_snapshots,
}


class _Touch(Action):
    """Commits the table as it is. Decoding put right the numbers that were too low; they only have to be written."""

    def apply(self, base: Any, context: ActionContext) -> Changes:
        """A property that comes and goes: no update says that nothing but the file changes."""
        name = "icefield.repaired"
        return Changes((SetProperties({name: "true"}), RemoveProperties((name,))))

"""The makers of repairs: each selects files that broke its rules, and repairs them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import Table
from icefield import manifest as f
from icefield.errors import InvalidArgument, InvalidMetadata
from icefield.manifest import DataFileContent, EntryStatus, ManifestEntries
from icefield.metadata import MAIN_BRANCH, RemoveProperties, SetProperties
from icefield.transaction import Action, ActionContext, Changes, DeleteFiles, TableAccess

from icefield_maintenance.compaction import RewriteDataFilesResult, RewriteDataPolicy, rewrite_data_files
from icefield_maintenance.deletes import RemoveDanglingDeletesResult
from icefield_maintenance.doctor.findings import Result
from icefield_maintenance.doctor.tables import rules
from icefield_maintenance.doctor.tables.corrections import corrections
from icefield_maintenance.doctor.tables.examine import looked_at
from icefield_maintenance.doctor.tables.groups import rules_with
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.mending import Corrections, MendManifests
from icefield_maintenance.doctor.tables.rules import Repair, Rule
from icefield_maintenance.doctor.tables.subject import Subject

_CLAIMS: Final = (rules.SORT_ORDERS, rules.SORTED)
_MISTAKEN: Final = frozenset({rules.ENTRY_NUMBERS, rules.DELETE_PARTITIONS, rules.DELETE_METRICS})
"""If one of these rules is broken, a delete file that is meant to delete rows may seem to delete nothing."""
_UNREADABLE: Final = frozenset({rules.VECTORS_DAMAGED, rules.DELETES_DAMAGED})
"""If one of these rules is broken, deletes cannot be applied."""


@dataclass(frozen=True, slots=True)
class Work:
    """One repair of one branch: the table, its current version as a subject, and the breaches."""

    table: Table
    repair: Repair
    branch: str
    """Empty for the table as a whole."""

    subject: Subject
    ledger: Ledger

    def rules(self) -> tuple[Rule, ...]:
        """The rules that the repair is for."""
        return rules_with(self.repair, self.subject.io.plugins)

    def named(self) -> Corrections:
        """The files that break the rules of the repair, without corrections."""
        return {location: {} for location in self.ledger.locations(self.rules())}

    def entries(self) -> Iterator[ManifestEntries]:
        """The entries of every manifest of the branch. Raises ``IcefieldError`` if a manifest cannot be read."""
        for head in self.subject.heads():
            for manifest in self.subject.manifest_list(head).manifests:
                yield self.subject.entries(manifest)

    def of_readable(self) -> Corrections:
        """As ``named``. Raises ``IcefieldError`` if a manifest of the branch cannot be read."""
        for _ in self.entries():
            pass
        return self.named()


@dataclass(frozen=True, slots=True)
class Maker:
    """The two steps of a repair.

    ``take`` selects the files, with the corrections of their manifest entries. It changes nothing, and raises
    ``IcefieldError`` if the repair is impossible. ``make`` makes the repair, and returns whether anything changed.
    """

    take: Callable[[Work], Corrections]
    make: Callable[[Work, Corrections], bool]


def _rewrite_metadata(work: Work, taken: Corrections) -> bool:
    with work.table.transaction() as tx:
        _Touch(tx.stage).commit()
    return True


def _remove_statistics(work: Work, taken: Corrections) -> bool:
    metadata = work.table.metadata
    with work.table.transaction() as tx, tx.update_statistics() as update:
        for file in metadata.statistics:
            if file.statistics_path in taken:
                update.remove_statistics(file.snapshot_id)
        for each in metadata.partition_statistics:
            if each.statistics_path in taken:
                update.remove_partition_statistics(each.snapshot_id)
    return True


def _upgrade(work: Work, taken: Corrections) -> bool:
    with work.table.transaction() as tx:
        tx.upgrade_table_version(3)
    return True


def _what_to_write_anew(work: Work) -> Corrections:
    taken = work.named()
    _check_distinct(work, taken)
    return taken


def _check_distinct(work: Work, names: Collection[str]) -> None:
    """Raise ``InvalidArgument`` if a manifest to rewrite lists a data file twice, as its rewrite would do the same."""
    named = pa.array(sorted(names), pa.string())
    for entries in work.entries():
        paths = entries.column(f.FILE_PATH)
        if entries.manifest.manifest_path in names or pc.any(pc.is_in(paths, value_set=named)).as_py():
            live = entries.status() != EntryStatus.DELETED
            data = live & (np.asarray(entries.column(f.CONTENT)) == DataFileContent.DATA)
            counts = paths.filter(pa.array(data)).value_counts()
            twice = counts.filter(pc.greater(counts.field("counts"), 1))
            if len(twice):
                path = twice.field("values")[0].as_py()
                raise InvalidArgument(f"data file {path} is listed twice", location=path)


def _rewrite_manifests(work: Work, taken: Corrections) -> bool:
    return _mended(work, taken, {})


def _mended(work: Work, manifests: Collection[str], entries: Corrections) -> bool:
    with work.table.transaction() as tx:
        action = MendManifests(tx.stage, manifests, entries, branch=work.branch)
        action.commit()
    return action.committed_id is not None


def _what_to_correct(work: Work) -> Corrections:
    work.of_readable()
    claims = work.ledger.locations(_CLAIMS)
    wrong = work.ledger.locations([rule for rule in work.rules() if rule not in _CLAIMS])
    found = corrections(work.subject, work.subject.data_files() if wrong else (), wrong, claims)
    _check_distinct(work, found)
    return found


def _correct_entries(work: Work, taken: Corrections) -> bool:
    return _mended(work, (), taken)


def _rewrite_partitions(work: Work, taken: Corrections) -> bool:
    table = work.table
    result = rewrite_data_files(
        TableAccess(table.metadata, table.io, table.transaction, table.metadata_location),
        RewriteDataPolicy(rewrite_all=True),
        branch=work.branch,
        only=pa.array(sorted(taken), pa.string()),
    )
    return bool(result.groups)


def _dangling(work: Work) -> Corrections:
    if not _removes(work.table.maintenance.remove_dangling_deletes(branch=work.branch, dry_run=True)):
        return {}
    _refuse(work.subject, _MISTAKEN)
    return work.named()


def _refuse(subject: Subject, hindrances: frozenset[Rule]) -> None:
    """Raise ``InvalidMetadata`` if one of some rules is broken. It reads the same number of files as an examination."""
    names = {rule.name for rule in hindrances}
    for finding in looked_at(hindrances, subject).findings():
        if finding.check in names and finding.result is Result.FAILED:
            raise InvalidMetadata(f"{finding.location}: {finding.found}", location=finding.location)


def _remove_dangling_deletes(work: Work, taken: Corrections) -> bool:
    return _removes(work.table.maintenance.remove_dangling_deletes(branch=work.branch))


def _removes(result: RemoveDanglingDeletesResult) -> bool:
    counts = (result.removed_position_delete_files, result.removed_deletion_vectors)
    return any((*counts, result.removed_equality_delete_files))


def _forget_missing_files(work: Work, taken: Corrections) -> bool:
    with work.table.transaction() as tx:
        DeleteFiles(tx.stage, branch=work.branch).delete_file(*sorted(taken)).commit()
    return True


def _rewritten(work: Work, *, dry_run: bool) -> RewriteDataFilesResult:
    threshold = 1 if work.ledger.locations([rules.DELETE_DEBT]) else None
    maintenance = work.table.maintenance
    return maintenance.rewrite_data_files(
        delete_file_threshold=threshold, remove_dangling_deletes=True, dry_run=dry_run
    )


def _what_to_rewrite(work: Work) -> Corrections:
    worth = _rewritten(work, dry_run=True).groups or _removes(
        work.table.maintenance.remove_dangling_deletes(branch=MAIN_BRANCH, dry_run=True)
    )
    if not worth:
        return {}
    _refuse(replace(work.subject, refs=(MAIN_BRANCH,)), _MISTAKEN | _UNREADABLE)
    return work.named()


def _rewrite_data_files(work: Work, taken: Corrections) -> bool:
    result = _rewritten(work, dry_run=False)
    return bool(result.groups or result.removed_delete_files)


def _what_to_cluster(work: Work) -> Corrections:
    return work.named() if work.table.maintenance.rewrite_manifests(dry_run=True).rewritten_manifests else {}


def _cluster_manifests(work: Work, taken: Corrections) -> bool:
    return bool(work.table.maintenance.rewrite_manifests().rewritten_manifests)


def _expire_snapshots(work: Work, taken: Corrections) -> bool:
    result = work.table.maintenance.expire_snapshots()
    return bool(result.snapshot_ids or result.refs or result.files)


class _Touch(Action):
    """Commits the table without changes.

    Decoding already corrected the numbers that were too low: writing them is enough.
    """

    def apply(self, base: Any, context: ActionContext) -> Changes:
        """Set a property and remove it again: no other update writes a new metadata file with the same contents."""
        name = "icefield.repaired"
        return Changes((SetProperties({name: "true"}), RemoveProperties((name,))))


MAKERS: Final[Mapping[Repair, Maker]] = {
    Repair.REWRITE_METADATA: Maker(Work.named, _rewrite_metadata),
    Repair.REMOVE_STATISTICS: Maker(Work.named, _remove_statistics),
    Repair.UPGRADE: Maker(Work.named, _upgrade),
    Repair.REWRITE_MANIFESTS: Maker(_what_to_write_anew, _rewrite_manifests),
    Repair.CORRECT_ENTRIES: Maker(_what_to_correct, _correct_entries),
    Repair.REWRITE_PARTITIONS: Maker(Work.of_readable, _rewrite_partitions),
    Repair.REMOVE_DANGLING_DELETES: Maker(_dangling, _remove_dangling_deletes),
    Repair.FORGET_MISSING_FILES: Maker(Work.of_readable, _forget_missing_files),
    Repair.REWRITE_DATA_FILES: Maker(_what_to_rewrite, _rewrite_data_files),
    Repair.CLUSTER_MANIFESTS: Maker(_what_to_cluster, _cluster_manifests),
    Repair.EXPIRE_SNAPSHOTS: Maker(Work.named, _expire_snapshots),
}

"""A rewrite of data files from its plan to its last commit."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from icefield.abc import MaintenanceProgress, Note
from icefield.engine import head_of
from icefield.errors import CommitFailed, CommitStateUnknown, FileMissing
from icefield.metadata import Snapshot, TableMetadata
from icefield.scan import TableScan
from icefield.transaction import TableAccess

from icefield_maintenance.compaction.committing import RewriteGroups
from icefield_maintenance.compaction.planning import FileGroup, RewritePlan
from icefield_maintenance.compaction.policy import RewriteDataPolicy, Sizes
from icefield_maintenance.compaction.result import RewriteDataFilesResult, RewrittenGroup
from icefield_maintenance.compaction.running import RewriteGroup, WrittenGroup
from icefield_maintenance.compaction.strategies import Ordering, chosen_strategy
from icefield_maintenance.local_runner import LocalRunner

_log = logging.getLogger(__name__)

_ROUNDS: Final = 4
"""The most rounds. Each further round plans the files again that others changed during the rewrite."""


def rewrite_data_files(
    target: TableAccess,
    policy: RewriteDataPolicy,
    *,
    branch: str,
    snapshot_properties: Mapping[str, str] | None = None,
    dry_run: bool = False,
    only: pa.Array | None = None,
) -> RewriteDataFilesResult:
    """Rewrite the data files that the policy chooses. Raises as ``MaintenanceTable.rewrite_data_files``.

    ``only`` names the files that are considered; None: all.
    """
    rewrite = _Rewrite(target, policy, branch, snapshot_properties or {})
    if dry_run:
        groups = target.reading_version(lambda metadata: rewrite.plan(metadata, only))
        planned = [WrittenGroup(group, ()).result for group in groups]
        return RewriteDataFilesResult(groups=tuple(planned), dry_run=True)
    rewrite.run(only)
    return rewrite.result


@dataclass(slots=True)
class _Rewrite:
    target: TableAccess
    policy: RewriteDataPolicy
    branch: str
    snapshot_properties: Mapping[str, str]
    done: list[RewrittenGroup] = field(default_factory=list)
    failed: list[FileGroup] = field(default_factory=list)
    snapshots: list[int] = field(default_factory=list)
    planned: int = 0
    tried: int = 0
    failed_commits: int = 0
    last_error: Exception | None = None

    @property
    def result(self) -> RewriteDataFilesResult:
        return RewriteDataFilesResult(
            groups=tuple(self.done),
            failed_groups=len(self.failed),
            failed_data_files=sum(len(group.tasks) for group in self.failed),
            failed_bytes=sum(group.nbytes for group in self.failed),
            snapshot_ids=tuple(self.snapshots),
        )

    def plan(self, metadata: TableMetadata, only: pa.Array | None) -> list[FileGroup]:
        """The groups of a version of the table."""
        sizes, spec = self._sizes(metadata, self._ordering(metadata)), self.policy.spec(metadata)
        if head_of(metadata, self.branch) is None:
            return []
        return RewritePlan(self._scan(metadata), self.policy, spec, sizes, only).groups()

    def run(self, only: pa.Array | None) -> None:
        """Rewrite, and repeat groups that were lost to others. Raises ``CommitFailed`` if too many commits failed."""
        self._run_rounds(only)
        most = self.policy.max_commits if self.policy.max_failed_commits is None else self.policy.max_failed_commits
        if self.policy.partial_progress and self.failed_commits > most:
            raise CommitFailed(
                f"{self.failed_commits} commits of a rewrite with partial_progress failed, where max_failed_commits "
                f"is {most}; {len(self.snapshots)} were made and stay. The last error: {self.last_error}"
            ) from self.last_error

    def _run_rounds(self, only: pa.Array | None) -> None:
        metadata = self.target.metadata
        lost: list[FileGroup] = []
        for _ in range(_ROUNDS):
            since = head_of(metadata, self.branch)
            try:
                groups = self.plan(metadata, only)
                if not groups or since is None:
                    return
                self.planned += len(groups)
                lost = []
                for part in self._commits(metadata, groups):
                    lost += self._rewritten(metadata, since, part)
                if not lost:
                    return
                # The next round takes the files of lost groups. Files that others removed need no rewrite.
                only = pa.array([path for group in lost for path in group.paths], pa.string())
            except FileMissing:
                if not self._has_expired(since):
                    raise
            with self.target.begin() as tx:
                metadata = tx.shape
        self.failed += lost
        self._note_failed_commit(CommitFailed(f"others changed the files {_ROUNDS} times"))

    def _has_expired(self, since: Snapshot | None) -> bool:
        """Whether ``since`` has expired, which explains a missing file: the next round starts at the newest version."""
        if since is None or self.target.newest is None:
            return False
        newest, _ = self.target.newest()
        return newest.snapshot_by_id(since.snapshot_id) is None

    def _commits(self, metadata: TableMetadata, groups: Sequence[FileGroup]) -> list[Sequence[FileGroup]]:
        """The groups of each commit."""
        # The first commit assigns ids to all rows without one. Later commits would conflict, since their rows were read
        # without ids.
        unnumbered = metadata.format_version >= 3 and any(group.has_unnumbered_rows for group in groups)
        if not self.policy.partial_progress or unnumbered:
            return [groups]
        size = -(-len(groups) // self.policy.max_commits)
        return [groups[start : start + size] for start in range(0, len(groups), size)]

    def _rewritten(self, metadata: TableMetadata, since: Snapshot, groups: Sequence[FileGroup]) -> list[FileGroup]:
        """Write groups and commit them. Return the groups that were lost to others."""
        failed: list[FileGroup] = []
        try:
            action, lost = self._committed(metadata, since, groups, failed)
        except CommitStateUnknown:
            raise
        except (CommitFailed, OSError) as error:
            if not self.policy.partial_progress:
                raise
            if isinstance(error, FileMissing) and self._has_expired(since):
                return [*groups]
            _log.warning("%d groups of files could not be rewritten: %s", len(groups), error)
            self.failed += groups
            self._note_failed_commit(error)
            return []
        if failed and isinstance(self.last_error, FileMissing) and self._has_expired(since):
            lost, failed = [*lost, *failed], []
        self.failed += failed
        if action is not None:
            self.done += [each.result for each in action.won]
            self.snapshots += [] if action.committed_id is None else [action.committed_id]
        return lost

    def _committed(
        self, metadata: TableMetadata, since: Snapshot, groups: Sequence[FileGroup], failed: list[FileGroup]
    ) -> tuple[RewriteGroups | None, list[FileGroup]]:
        ordering = self._ordering(metadata)
        sizes, spec = self._sizes(metadata, ordering), self.policy.spec(metadata)
        work = RewriteGroup(self._scan(metadata), spec, sizes, ordering)
        with self.target.begin() as tx:
            written = self._written(work, groups, tx.context.written.add, failed)
            if not written:
                return None, []
            action = RewriteGroups(
                tx.stage,
                written,
                since,
                keep_sequence_number=self.policy.use_starting_sequence_number,
                branch=self.branch,
                snapshot_properties=self.snapshot_properties,
            )
            action.commit()
        return action, [each.group for each in action.lost]

    def _notify(self) -> None:
        self.tried += 1
        event = MaintenanceProgress(self.target.name, "rewrite-data-files", "groups of files", self.tried, self.planned)
        self.target.io.listeners.tell(event)

    def _written(
        self, work: RewriteGroup, groups: Sequence[FileGroup], note: Note, failed: list[FileGroup]
    ) -> list[WrittenGroup]:
        """Write several groups at a time. With partial progress, failed groups go to ``failed``; else errors raise."""
        runner = self.target.runner or LocalRunner(self.policy.max_concurrent_groups)
        keep_going = self.policy.partial_progress
        written: list[WrittenGroup] = []
        results = runner.attempts(work, groups, note, keep_going=keep_going, done=self._notify)
        for group, result in zip(groups, results, strict=True):
            if isinstance(result, Exception):
                _log.warning("a group of %d files could not be rewritten: %s", len(group.tasks), result)
                failed.append(group)
                self.last_error = result
            else:
                written.append(WrittenGroup(group, result))
        if not written:
            self.failed_commits += 1
        return written

    def _ordering(self, metadata: TableMetadata) -> Ordering:
        return chosen_strategy(self.policy, metadata, self.target.io.plugins)

    def _sizes(self, metadata: TableMetadata, ordering: Ordering) -> Sizes:
        return self.policy.sizes(metadata, streams=ordering.streams, is_shared=self.target.runner is not None)

    def _note_failed_commit(self, error: Exception) -> None:
        self.failed_commits += 1
        self.last_error = error

    def _scan(self, metadata: TableMetadata) -> TableScan:
        return TableScan(metadata=metadata, io=self.target.io, ref=self.branch, runner=self.target.runner)

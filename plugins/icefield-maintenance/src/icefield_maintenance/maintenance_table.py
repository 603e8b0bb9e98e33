"""The upkeep of one table, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self

from icefield import Table
from icefield.abc import WorkRunner
from icefield.expressions import AlwaysTrue, BooleanExpression, as_expression
from icefield.manifest import ManifestFile
from icefield.metadata import MAIN_BRANCH, PartitionStatisticsFile, StatisticsFile, Timestamp
from icefield.partitioning import SortOrder
from icefield.transaction import TableAccess

from icefield_maintenance.compaction import RewriteDataFilesResult, RewriteDataPolicy, rewrite_data_files
from icefield_maintenance.compaction.policy import JobOrder, Strategy
from icefield_maintenance.computing_stats import compute_partition_stats, compute_table_stats
from icefield_maintenance.deletes import (
    ConvertEqualityDeletes,
    ConvertEqualityDeletesResult,
    RemoveDanglingDeletes,
    RemoveDanglingDeletesResult,
    RewriteDeletesResult,
    RewritePolicy,
    RewritePositionDeletes,
)
from icefield_maintenance.deletes.results import taken_by
from icefield_maintenance.expiry import ExpireSnapshotsResult, Retention, expire
from icefield_maintenance.manifests import ManifestChoice, RewriteManifests, RewriteManifestsResult
from icefield_maintenance.one_commit import done
from icefield_maintenance.orphans import RemoveOrphanFilesResult, clock
from icefield_maintenance.orphans.belonging import PrefixMismatch
from icefield_maintenance.orphans.prefixes import Prefixes
from icefield_maintenance.orphans.remove import remove_orphans
from icefield_maintenance.paths import RewriteTablePathResult, rewrite_table_path


class MaintenanceTable:
    """Upkeep of a table: each call works on the version that is the newest when it begins, and is a commit of its own.

    So does a dry run, which leaves the table that it was called on at the version that it has. A table that was opened
    without a catalog is looked at as it was opened.
    """

    def __init__(self, table: Table) -> None:
        self._load = table.access
        self._runner: WorkRunner | None = None

    def on(self, runner: WorkRunner) -> Self:
        """The same upkeep, whose reading and writing of many files a runner does: the tasks of a cluster, say.

        Planning and commits stay here. What has no items to share out is done here, too.
        """
        other = copy(self)
        other._runner = runner
        return other

    def _target(self) -> TableAccess:
        """The newest version, for one call."""
        return replace(self._load(), runner=self._runner)

    def expire_snapshots(
        self,
        older_than: Timestamp | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] = (),
        *,
        dry_run: bool = False,
        clean_files: bool = True,
    ) -> ExpireSnapshotsResult:
        """Remove old snapshots, branches and tags, and delete the files that nothing refers to any more.

        ``older_than``: snapshots from before this time expire, by default those beyond
        ``history.expire.max-snapshot-age-ms``. It is in ms since 1970 UTC, a datetime or a string such as
        ``"2026-01-31T12:00"``; without a zone it is of UTC, as everywhere.
        ``retain_last``: so many of each branch are kept whatever their age; by default
        ``history.expire.min-snapshots-to-keep``. What a branch states itself counts before both. ``snapshot_ids``
        expire whatever their age; where only they are given, nothing else does. The heads of branches, and what tags
        name, are kept; branches and tags themselves go beyond their ``max-ref-age-ms`` only, and ``main`` never.
        Snapshots that no branch or tag leads to expire by age.

        Files are deleted when the commit is known to have succeeded: data first, manifest lists last. A run that was
        interrupted before its end is finished by the next. With ``dry_run`` nothing is changed, and the result names
        the files; with ``clean_files=False`` none is deleted. Files outside of the table's own folders, and in the
        folder of another table, stay and are counted (``kept_files``): ``add_files`` may have taken them from there.

        Spec: "Snapshot Retention Policy". Raises ``InvalidArgument`` for a table with ``gc.enabled=false``, for one
        that the catalog has under a second name, and for an id that a branch or tag names, ``NoSuchSnapshot``,
        ``UnsupportedFeature`` for an encrypted table, errors of commits, and ``FileMissing`` or
        ``InvalidMetadata`` where a kept snapshot cannot be read: then no file is deleted. A file that cannot be deleted
        is logged and counted.
        """
        asked = Retention.asked(clock.local_now_ms(), older_than, retain_last, snapshot_ids)
        return expire(self._target(), asked, dry_run=dry_run, clean_files=clean_files)

    def remove_orphan_files(
        self,
        older_than: Timestamp | None = None,
        location: str | None = None,
        *,
        dry_run: bool = True,
        allow_recent: bool = False,
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
        prefix_mismatch: PrefixMismatch = "error",
        exclusive: bool = False,
    ) -> RemoveOrphanFilesResult:
        """Find the files below the table that no version of it refers to, and with ``dry_run=False`` delete them.

        ``older_than``: files that were written before it, as for ``expire_snapshots``; three days ago, unless given,
        and no later than a day ago unless ``allow_recent``: younger files may be those of a writer that has not
        committed yet. The age of a file is by its store's clock or this machine's, whichever makes it younger; a file
        without a time is left. ``location`` is the folder to look into, the table's unless given. Left are also: the
        versions of a table whose file system is its catalog, what begins with a dot or an underscore and is no
        partition, and whatever is in the folder of another table.

        Locations that differ in how they name one store count as one, as far as the file systems and location maps
        that are in use say so; ``equal_schemes`` (``{"viewfs": "hdfs"}``) and ``equal_authorities`` (``{"nn1,nn2":
        "nameservice"}``) say more. ``prefix_mismatch`` says whether files of which it is still unknown whose they are
        are refused, left (``"ignore"``) or taken for orphans (``"delete"``).

        A folder that other tables may use is refused: one with the metadata file of another table (or of one that was
        dropped) in its own metadata folder or around it, and a ``location`` outside of the table's without a version of
        this table, such as a folder of data that tables share. ``exclusive=True`` says that no other table needs
        anything in it.

        Raises ``InvalidArgument``, also for a table with ``gc.enabled=false`` and for one that the catalog has under a
        second name, ``NotSupportedByCatalog`` for a table without a catalog unless it is a dry run, ``FileMissing`` or
        ``InvalidMetadata`` where a snapshot cannot be read: then nothing is deleted. A file that cannot be
        deleted is logged and counted.
        """
        return remove_orphans(
            self._target(),
            older_than=older_than,
            location=location,
            dry_run=dry_run,
            allow_recent=allow_recent,
            prefixes=Prefixes(equal_schemes, equal_authorities),
            mismatch=prefix_mismatch,
            exclusive=exclusive,
        )

    def compute_partition_stats(
        self, snapshot_id: int | None = None, *, file_format: str | None = None, incremental: bool = True
    ) -> PartitionStatisticsFile | None:
        """Write the statistics of each partition of a snapshot, the current one by default, and register them.

        ``file_format`` is that of the file; the table's ``write.format.default``, unless given. They are computed from
        those of the nearest ancestor that has any and from the manifests written since; ``incremental=False`` reads
        every manifest of the snapshot. The snapshot's own statistics, where they are there, are given as they are.
        None for a table without a snapshot.

        Raises ``NoSuchSnapshot``, ``InvalidArgument`` for a table that never had a partition field, and
        ``UnsupportedFeature`` for an encrypted table.
        """
        return compute_partition_stats(self._target, snapshot_id, file_format, incremental=incremental)

    def compute_table_stats(
        self, columns: Sequence[str] | str | None = None, snapshot_id: int | None = None
    ) -> StatisticsFile | None:
        """Count the distinct values of columns in a snapshot, the current one by default, and register the result.

        ``columns`` are names, or one, of fields of structs too; by default all columns of primitive types. The rows
        are read once, without those that are deleted. A sketch of each column, with the number ``ndv`` next to it,
        goes into a Puffin file; what the snapshot's file until now says of other columns is kept. Numbers beyond 4096
        are estimates, with a relative standard error of 1.6 %. None for a table without a snapshot.

        Raises ``NoSuchSnapshot``, ``InvalidArgument`` for a column that is not there or is nested, and
        ``UnsupportedFeature`` for an encrypted table.
        """
        return compute_table_stats(self._target, columns, snapshot_id)

    def rewrite_data_files(
        self,
        strategy: Strategy = "binpack",
        sort_order: SortOrder | Any = None,
        zorder_columns: Sequence[str] | str = (),
        where: str | BooleanExpression | None = None,
        *,
        target_file_size_bytes: int | None = None,
        min_file_size_bytes: int | None = None,
        max_file_size_bytes: int | None = None,
        min_input_files: int = 5,
        delete_file_threshold: int | None = None,
        delete_ratio_threshold: float = 0.3,
        max_file_group_size_bytes: int | None = None,
        partial_progress: bool = False,
        max_commits: int = 10,
        max_failed_commits: int | None = None,
        max_concurrent_file_group_rewrites: int = 1,
        rewrite_job_order: JobOrder = "none",
        rewrite_all: bool = False,
        use_starting_sequence_number: bool = True,
        remove_dangling_deletes: bool = False,
        output_spec_id: int | None = None,
        branch: str = MAIN_BRANCH,
        dry_run: bool = False,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RewriteDataFilesResult:
        """Write the rows of small, too large and much deleted data files into files of about the target size.

        ``strategy``: ``binpack`` keeps the order of the rows, ``sort`` sorts them by ``sort_order`` (in any form that
        ``create_table`` takes, as ``"day(ts) desc nulls last"`` or a list of such; the table's order by default),
        ``zorder`` clusters them by all ``zorder_columns``.
        Files that may hold rows of ``where`` are looked at. Those below ``min_file_size_bytes`` (75 % of the target),
        or above ``max_file_size_bytes`` (180 %), with ``delete_file_threshold`` delete files, or of whose rows
        ``delete_ratio_threshold`` are deleted (by deletes of that file alone), are put into groups by partition, of at
        most ``max_file_group_size_bytes`` (10 GiB; of what is sorted 2 GiB). Rewritten are groups of
        ``min_input_files``, and those that make up a file or hold one that is much deleted; ``rewrite_all`` takes every
        file, whatever its partition spec. The target is ``write.target-file-size-bytes`` by default.

        Deleted rows are left out; others keep their ids. New files have the data sequence number of the snapshot that
        was read, unless ``use_starting_sequence_number`` is False: equality deletes that others commit meanwhile apply
        to them. A group whose files others changed meanwhile is planned anew, a few times, and counted as failed then.
        All groups are one commit; with ``partial_progress`` they are up to ``max_commits``, and a group that fails does
        not hinder others, unless more than ``max_failed_commits`` (``max_commits``) come to nothing. Groups are
        rewritten in ``rewrite_job_order``, ``max_concurrent_file_group_rewrites`` at once, in the same memory.
        ``remove_dangling_deletes`` afterwards drops deletes that apply to no file any more.

        Raises ``InvalidArgument``, ``InvalidFile`` for a damaged file, ``UnsupportedFeature`` for an encrypted table
        and a spec with an unknown transform, ``CommitFailed`` where others commit faster.
        """
        policy = RewriteDataPolicy(
            strategy=strategy,
            sort_order=sort_order,
            zorder_columns=_names(zorder_columns),
            row_filter=_expression(where),
            target_bytes=target_file_size_bytes,
            min_bytes=min_file_size_bytes,
            max_bytes=max_file_size_bytes,
            min_input_files=min_input_files,
            delete_file_threshold=delete_file_threshold,
            delete_ratio_threshold=delete_ratio_threshold,
            max_group_bytes=max_file_group_size_bytes,
            partial_progress=partial_progress,
            max_commits=max_commits,
            max_failed_commits=max_failed_commits,
            max_concurrent_groups=max_concurrent_file_group_rewrites,
            rewrite_job_order=rewrite_job_order,
            rewrite_all=rewrite_all,
            use_starting_sequence_number=use_starting_sequence_number,
            output_spec_id=output_spec_id,
        )
        result = rewrite_data_files(
            self._target(), policy, branch=branch, snapshot_properties=snapshot_properties, dry_run=dry_run
        )
        if not remove_dangling_deletes or dry_run:
            return result
        removed = self.remove_dangling_deletes(branch=branch, snapshot_properties=snapshot_properties)
        gone = removed.removed_position_delete_files + removed.removed_deletion_vectors
        return replace(result, removed_delete_files=gone + removed.removed_equality_delete_files)

    def rewrite_manifests(
        self,
        spec_id: int | None = None,
        where: str | BooleanExpression | None = None,
        *,
        predicate: Callable[[ManifestFile], bool] | None = None,
        cluster_by: Sequence[str] | str = (),
        dry_run: bool = False,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RewriteManifestsResult:
        """Cluster the entries of manifests by partition, in manifests of about ``commit.manifest.target-size-bytes``.

        Rewritten are the manifests of data files and of delete files of the spec ``spec_id`` (of every spec by
        default) that may hold rows of the filter ``where`` and that ``predicate`` accepts; those of a spec and content
        that are clustered already, and not small, stay. ``cluster_by`` names the partition fields that come first in
        the order. Entries keep their snapshots, sequence numbers and row ids. Manifests that others add meanwhile are
        kept; where one that is rewritten has gone meanwhile, those of its spec are chosen anew. ``dry_run`` says what
        would be done.

        Raises ``InvalidArgument`` for a spec, field or column that the table does not have, ``UnsupportedFeature`` for
        a named spec with an unknown transform and for an encrypted table, ``CommitFailed`` where others commit faster.
        """
        choice = ManifestChoice(
            spec_id, AlwaysTrue() if where is None else as_expression(where), predicate, _names(cluster_by)
        )
        target = self._target()
        choice.check(target.metadata)
        begin = partial(
            RewriteManifests,
            choice=choice,
            branch=branch,
            snapshot_properties=snapshot_properties,
            runner=target.runner,
        )
        return done(target, begin, branch, dry_run=dry_run)

    def rewrite_position_delete_files(
        self,
        where: str | BooleanExpression | None = None,
        *,
        target_file_size: int | None = None,
        min_input_files: int = 5,
        rewrite_all: bool = False,
        dry_run: bool = False,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RewriteDeletesResult:
        """Write the positions of small position delete files into fewer files, without those of files that are gone.

        Rewritten are the files of each partition that may hold rows of ``where``: where ``min_input_files`` are far
        from ``target_file_size`` bytes (``write.delete.target-file-size-bytes`` by default), or several make up one,
        and fewer files come of them, or more of those that are too large; all with ``rewrite_all``. In version 3 every
        position delete file becomes deletion vectors, and the vectors of small Puffin files move into fewer. New files
        have the sequence number of the newest deletes in them.
        ``dry_run`` says which files would be rewritten.

        Raises ``InvalidArgument``, ``InvalidFile`` for a damaged delete file, ``UnsupportedFeature`` for an encrypted
        table, ``CommitFailed`` where others commit faster.
        """
        policy = RewritePolicy(_expression(where), target_file_size, min_input_files, rewrite_all)
        target = self._target()
        begin = partial(
            RewritePositionDeletes,
            policy=policy,
            branch=branch,
            snapshot_properties=snapshot_properties,
            runner=target.runner,
        )
        return done(target, begin, branch, dry_run=dry_run)

    def remove_dangling_deletes(
        self,
        *,
        after: Iterable[ConvertEqualityDeletesResult | RewriteDeletesResult] = (),
        dry_run: bool = False,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RemoveDanglingDeletesResult:
        """Remove delete files that apply to no data file, without reading any.

        Those are position delete files and deletion vectors of data files that are gone, equality deletes that are
        not newer than any data file of their partition, position delete files older than all of theirs, and those of
        data files that have a deletion vector. ``dry_run`` says what would be removed; with ``after``, the results of
        other dry runs, what would be left to remove after these. What they would add is not known.

        Raises ``UnsupportedFeature`` for an encrypted table, ``CommitFailed`` where others commit faster.
        """
        gone = taken_by(after) if dry_run else ()
        begin = partial(RemoveDanglingDeletes, gone=gone, branch=branch, snapshot_properties=snapshot_properties)
        return done(self._target(), begin, branch, dry_run=dry_run)

    def convert_equality_deletes(
        self,
        where: str | BooleanExpression | None = None,
        *,
        dry_run: bool = False,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> ConvertEqualityDeletesResult:
        """Put position deletes, or in version 3 deletion vectors, in the place of equality deletes.

        The data files that equality deletes of partitions that may hold rows of ``where`` apply to are read once, to
        find the rows; scans then need not look up keys. Data files and deletes that others commit meanwhile are looked
        at before the commit is tried again. ``dry_run`` says what would be converted and how many files be read.

        Raises ``InvalidFile`` for a damaged file, ``UnsupportedFeature`` for an encrypted table and for one with a
        column ``_pos``, ``CommitFailed`` where others commit faster.
        """
        target = self._target()
        begin = partial(
            ConvertEqualityDeletes,
            row_filter=_expression(where),
            branch=branch,
            snapshot_properties=snapshot_properties,
            runner=target.runner,
        )
        return done(target, begin, branch, dry_run=dry_run)

    def rewrite_table_path(
        self,
        source_prefix: str,
        target_prefix: str,
        *,
        start_version: str | None = None,
        end_version: str | None = None,
        staging_location: str | None = None,
        create_file_list: bool = True,
    ) -> RewriteTablePathResult:
        """Write the metadata of a copy of the table, whose files are to be below another folder.

        Metadata files, manifest lists, manifests, position delete files and the Puffin files of deletion vectors name
        files: all are written below ``staging_location`` (a new folder among the table's metadata by default), with
        ``target_prefix`` for ``source_prefix``. The table stays as it is. The result lists what must be copied where:
        these, and all files of rows, equality deletes and statistics. Whoever has copied them registers the copy by
        its metadata file, or opens it.

        ``end_version`` is the metadata file that the copy ends with, by its name or location; the current one, unless
        given. With ``start_version``, a metadata file that was copied before, only files of rows that came later are
        listed. With ``create_file_list`` the list is written, too, as ``file-list``: CSV without a header.

        Raises ``InvalidArgument`` for prefixes that are the same, a file that is not below the source, and a version
        that the metadata log does not have; ``UnsupportedFeature`` for an encrypted table. Nothing stays of a failure.
        """
        target = self._target()
        rewrite = partial(
            rewrite_table_path,
            target.io,
            source_prefix=source_prefix,
            target_prefix=target_prefix,
            start_version=start_version,
            end_version=end_version,
            staging_location=staging_location,
            create_file_list=create_file_list,
        )
        return target.reading(target.metadata, target.metadata_location, rewrite)


def _names(given: Sequence[str] | str) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _expression(where: str | BooleanExpression | None) -> BooleanExpression | None:
    return None if where is None else as_expression(where)

"""The maintenance of one table: an action for each method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial, wraps
from inspect import signature
from typing import Any, ParamSpec, Self, TypeVar

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
from icefield_maintenance.erasure import EraseResult, erase
from icefield_maintenance.expiry import ExpireSnapshotsResult, Retention, expire
from icefield_maintenance.manifests import ManifestChoice, RewriteManifests, RewriteManifestsResult
from icefield_maintenance.one_commit import done
from icefield_maintenance.orphans import RemoveOrphanFilesResult, clock
from icefield_maintenance.orphans.belonging import PrefixMismatch
from icefield_maintenance.orphans.prefixes import EqualPrefixes
from icefield_maintenance.orphans.remove import remove_orphans
from icefield_maintenance.paths import RewriteTablePathResult, rewrite_table_path

P = ParamSpec("P")
R = TypeVar("R")


def _told(method: Callable[P, R]) -> Callable[P, R]:
    """Tell listeners when an operation starts and ends, unless it is a dry run."""
    dry_run = signature(method).parameters.get("dry_run")
    operation = method.__name__.replace("_", "-")

    @wraps(method)
    def telling(*args: P.args, **keywords: P.kwargs) -> R:
        table = args[0]._table  # type: ignore[attr-defined]
        if dry_run is not None and keywords.get("dry_run", dry_run.default):
            return method(*args, **keywords)
        with table.io.listeners.operation(operation, table.name()):
            return method(*args, **keywords)

    return telling


class MaintenanceTable:
    """Maintenance of a table: each call works on the newest version at its beginning, and makes its own commit.

    A dry run works on the newest version, too, but does not refresh its table. For a table that was opened without a
    catalog, calls use the version that was opened.
    """

    def __init__(self, table: Table) -> None:
        self._table, self._load = table, table.access
        self._runner: WorkRunner | None = None

    def __repr__(self) -> str:
        return f"MaintenanceTable({self._table!r})"

    def on(self, runner: WorkRunner) -> Self:
        """The same maintenance with a runner that reads and writes many files, for example in the tasks of a cluster.

        Planning and commits stay in this process, and so does work that cannot be divided into items.
        """
        other = copy(self)
        other._runner = runner
        return other

    def _target(self) -> TableAccess:
        """The newest version, for one call."""
        return replace(self._load(), runner=self._runner)

    @_told
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

        ``older_than``: snapshots from before this time expire, by default snapshots older than
        ``history.expire.max-snapshot-age-ms``. It is in ms since 1970 UTC, a datetime or a string such as
        ``"2026-01-31T12:00"``; a time without a zone is in UTC, as everywhere.
        ``retain_last``: each branch keeps this number of snapshots at any age; by default
        ``history.expire.min-snapshots-to-keep``. The settings of a branch override both. ``snapshot_ids`` expire at any
        age; if only they are given, no other snapshot expires. The heads of branches and the snapshots of tags are
        kept. Branches and tags themselves expire only beyond their ``max-ref-age-ms``, and ``main`` never expires.
        Snapshots outside of all branches and tags expire by age.

        Files are deleted when the commit is known to have succeeded: data first, manifest lists last. The next run
        finishes an interrupted run. With ``dry_run`` nothing is changed, and the result names the files; with
        ``clean_files=False`` no file is deleted. Files outside of the table's own folders, and in the folder of another
        table, stay and are counted (``kept_files``): ``add_files`` may have taken them from there.

        Spec: "Snapshot Retention Policy". Raises ``InvalidArgument`` for a table with ``gc.enabled=false``, for a table
        with a second name in the catalog, and for an id that a branch or tag names, ``NoSuchSnapshot``, errors of
        commits, and ``FileMissing`` or ``InvalidMetadata`` where a kept snapshot cannot be read: then no file is
        deleted. A file that cannot be deleted is logged and counted.
        """
        asked = Retention.asked(clock.local_now_ms(), older_than, retain_last, snapshot_ids)
        return expire(self._target(), asked, dry_run=dry_run, clean_files=clean_files)

    @_told
    def erase(
        self, row_filter: str | BooleanExpression, *, remove_tags: bool = False, always: bool = False
    ) -> EraseResult:
        """Erase the rows that match a filter: from every branch and every earlier version of the table.

        The rows are deleted from all branches, and files that still hold them are written anew, whatever
        ``write.delete.mode`` says. Equality deletes, whose files hold values, become position deletes, and manifests
        lose the entries of removed files, whose bounds are values. Then every snapshot expires that is not the head of
        a branch or tag, and its files are deleted. At the end, the files of all remaining versions are read to prove
        that none of them holds such a row. It can be called again after an error or an interrupt.

        If no data file of any version holds such a row, nothing is changed; ``always`` goes on, since equality deletes
        and entries of removed files may hold its values. A tag that keeps rows, or such deletes or entries, is refused,
        or with ``remove_tags`` removed. Columns have their present names in the filter.

        Not reached are files that no version refers to, which ``remove_orphan_files`` deletes; values in names of
        folders and in summaries of older metadata files, where a table is partitioned by the column; files that the
        table took from elsewhere; and copies. Another table that took files of this one loses them.

        Raises ``InvalidArgument`` for such a tag, for a staged write, which would be lost, and for a table with
        ``gc.enabled=false`` or with a second name in the catalog. Raises ``ValidationFailed`` where the rows are not
        proven to be gone: others write such rows again and again, or a file could not be deleted.
        """
        row_filter = as_expression(row_filter)
        return erase(self._table, self, self._target(), row_filter, remove_tags=remove_tags, always=always)

    @_told
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

        ``older_than``: an orphan was written before this time, as for ``expire_snapshots``. The default is three days
        ago. A time within the last day needs ``allow_recent``: younger files may belong to a writer that has not
        committed yet. The store's clock or this machine's clock gives the age of a file, whichever makes it younger; a
        file without a time stays. ``location`` is the folder to search, by default the table's. These files stay, too:
        versions of a table with its file system as catalog, files and folders with a name that begins with a dot or an
        underscore (except partitions), and all files in the folder of another table.

        Different names of one store count as equal if the file systems and location maps in use say so;
        ``equal_schemes`` (``{"viewfs": "hdfs"}``) and ``equal_authorities`` (``{"nn1,nn2": "nameservice"}``) add equal
        names. ``prefix_mismatch`` is for files with the path of a table's file under another scheme or authority: they
        are refused (``"error"``), left (``"ignore"``) or taken for orphans (``"delete"``).

        A folder that other tables may use is refused. This is a folder with the metadata file of another or a dropped
        table in its own metadata folder or around it. It is also a ``location`` outside of the table's own without a
        version of this table, such as a shared folder of data. ``exclusive=True`` asserts that no other table needs a
        file in the folder.

        Raises ``InvalidArgument``, also for a table with ``gc.enabled=false`` and for a table with a second name in the
        catalog, ``NotSupportedByCatalog`` for a table without a catalog unless it is a dry run, ``FileMissing`` or
        ``InvalidMetadata`` where a snapshot cannot be read: then nothing is deleted. A file that cannot be
        deleted is logged and counted.
        """
        return remove_orphans(
            self._target(),
            older_than=older_than,
            location=location,
            dry_run=dry_run,
            allow_recent=allow_recent,
            prefixes=EqualPrefixes(equal_schemes, equal_authorities),
            mismatch=prefix_mismatch,
            exclusive=exclusive,
        )

    @_told
    def compute_partition_stats(
        self, snapshot_id: int | None = None, *, file_format: str | None = None, incremental: bool = True
    ) -> PartitionStatisticsFile | None:
        """Write the statistics of each partition of a snapshot, the current one by default, and register them.

        ``file_format`` is the format of the file, by default the table's ``write.format.default``. If the snapshot has
        statistics, they are returned unchanged. Otherwise they are computed from the statistics of the nearest ancestor
        with statistics, and from the manifests written since. ``incremental=False`` always reads every manifest of the
        snapshot instead. Returns None for a table without a snapshot.

        Raises ``NoSuchSnapshot``, and ``InvalidArgument`` for a table that never had a partition field.
        """
        return compute_partition_stats(self._target, snapshot_id, file_format, incremental=incremental)

    @_told
    def compute_table_stats(
        self, columns: Sequence[str] | str | None = None, snapshot_id: int | None = None
    ) -> StatisticsFile | None:
        """Count the distinct values of columns in a snapshot, the current one by default, and register the result.

        ``columns`` are one or several names of columns, including fields of structs; by default all top-level columns
        of primitive types. The live rows are read once. A sketch of each column, with the number ``ndv`` next to it,
        goes into a Puffin file; entries for other columns in the snapshot's earlier file are kept. Numbers beyond 4096
        are estimates, with a relative standard error of 1.6 %. Returns None for a table without a snapshot.

        Raises ``NoSuchSnapshot``, and ``InvalidArgument`` for a missing or a nested column.
        """
        return compute_table_stats(self._target, columns, snapshot_id)

    @_told
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
        max_rewritten_bytes: int | None = None,
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

        ``strategy``: ``binpack`` keeps the order of the rows. ``sort`` sorts them by ``sort_order``, by default the
        table's order; it has any form that ``create_table`` takes, such as ``"day(ts) desc nulls last"`` or a list of
        such strings. ``zorder`` clusters the rows by all ``zorder_columns``. Files that may hold rows of ``where`` are
        candidates. A file is chosen if it is below ``min_file_size_bytes`` (75 % of the target) or above
        ``max_file_size_bytes`` (180 %), or if it has ``delete_file_threshold`` delete files. It is also chosen if
        delete files that apply to no other file delete ``delete_ratio_threshold`` of its rows. Chosen files form groups
        by partition, of at most ``max_file_group_size_bytes`` (10 GiB; 2 GiB for sorted groups). A group is rewritten
        if it has ``min_input_files``, if its files make up a file, or if it has a too large or much deleted file.
        ``rewrite_all`` takes every file, of any partition spec. The target is ``write.target-file-size-bytes`` by
        default. ``max_rewritten_bytes`` limits a call to the files that gain most for each byte; it divides groups.

        Deleted rows are left out; other rows keep their ids. New files have the data sequence number of the snapshot
        that was read, unless ``use_starting_sequence_number`` is False: concurrent equality deletes apply to them. If
        others change files of a group meanwhile, the group is planned again, and counts as failed after a few times.
        All groups are one commit. With ``partial_progress`` there are up to ``max_commits`` commits, and a failed group
        does not hinder others, unless more than ``max_failed_commits`` (``max_commits``) commits fail. Groups are
        rewritten in ``rewrite_job_order``, ``max_concurrent_file_group_rewrites`` at once, in the same memory.
        ``remove_dangling_deletes`` afterwards drops deletes that apply to no file any more.

        Raises ``InvalidArgument``, ``InvalidFile`` for a damaged file, ``UnsupportedFeature`` for a spec with an
        unknown transform, ``CommitFailed`` where others commit faster.
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
            max_rewritten_bytes=max_rewritten_bytes,
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

    @_told
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

        The rewrite takes manifests of data files and of delete files: of the spec ``spec_id`` (by default of every
        spec), with files that may hold rows of the filter ``where``, and accepted by ``predicate``. The manifests of a
        spec and content stay if they are clustered already, and not small. ``cluster_by`` names the partition fields
        that come first in the order. Entries keep their snapshots, sequence numbers and row ids. Manifests that others
        add meanwhile are kept. If others remove a chosen manifest meanwhile, the manifests of its spec and content are
        chosen again. ``dry_run`` returns the plan.

        Raises ``InvalidArgument`` for a spec, field or column that the table does not have, ``UnsupportedFeature`` for
        a named spec with an unknown transform, ``CommitFailed`` where others commit faster.
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

    @_told
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
        """Write the positions of small position delete files into fewer files, without positions of removed files.

        The rewrite takes the files of each partition that may hold rows of ``where``, if ``min_input_files`` of them
        are far from ``target_file_size`` bytes (by default ``write.delete.target-file-size-bytes``), or if several make
        up a file of that size. It must give fewer files, or split files that are too large. ``rewrite_all`` takes all
        files. In version 3 every position delete file becomes deletion vectors, and the vectors of small Puffin files
        move into fewer files. A new file has the highest data sequence number of the deletes that apply to its data
        files. ``dry_run`` returns the plan.

        Raises ``InvalidArgument``, ``InvalidFile`` for a damaged delete file, and ``CommitFailed`` where others commit
        faster.
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

    @_told
    def remove_dangling_deletes(
        self,
        *,
        after: Iterable[ConvertEqualityDeletesResult | RewriteDeletesResult] = (),
        dry_run: bool = False,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RemoveDanglingDeletesResult:
        """Remove delete files that apply to no data file, without reading any.

        These are position delete files and deletion vectors of removed data files, and position delete files of data
        files with a deletion vector. They are also equality deletes that are not newer than any data file of their
        partition, and position delete files older than all data files of their partition. ``dry_run`` returns the plan.
        With ``after``, the results of other dry runs, the plan leaves out the files that these would remove. It does
        not know the files that these would add.

        Raises ``CommitFailed`` where others commit faster.
        """
        gone = taken_by(after) if dry_run else ()
        begin = partial(RemoveDanglingDeletes, gone=gone, branch=branch, snapshot_properties=snapshot_properties)
        return done(self._target(), begin, branch, dry_run=dry_run)

    @_told
    def convert_equality_deletes(
        self,
        where: str | BooleanExpression | None = None,
        *,
        dry_run: bool = False,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> ConvertEqualityDeletesResult:
        """Replace equality deletes by position deletes, or in version 3 by deletion vectors.

        The conversion takes equality deletes of partitions that may hold rows of ``where``. It reads their data files
        once to find the rows; scans then need not look up keys. A retry of the commit takes account of data files and
        deletes that others committed meanwhile. ``dry_run`` returns the plan, with the number of files to read.

        Raises ``InvalidFile`` for a damaged file, ``UnsupportedFeature`` for a table with a column ``_pos``,
        ``CommitFailed`` where others commit faster.
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

    @_told
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
        """Write the metadata of a copy of the table below another folder.

        Metadata files, manifest lists, manifests, position delete files and the Puffin files of deletion vectors name
        files. They are written below ``staging_location`` (by default a new folder among the table's metadata), with
        ``target_prefix`` for ``source_prefix``. The table is not changed. The result lists the files to copy, with
        their locations in the copy: the written files, and all files of rows, equality deletes and statistics. After
        copying these files, register the copy by its metadata file, or open it.

        ``end_version`` is the last metadata file of the copy, by its name or location; by default the current one. With
        ``start_version``, a metadata file that was copied before, the list has only later files of rows. With
        ``create_file_list`` the list is also written, as ``file-list``: CSV without a header.

        Encrypted files of the table are encrypted in the copy, written ones with new keys. With ``start_version``, all
        metadata of an encrypted table is written again: readers of the earlier copy fail while its files are replaced.

        Raises ``InvalidArgument`` for equal prefixes, a file outside of the source, and a version that is not in the
        metadata log. A failure leaves no files.
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

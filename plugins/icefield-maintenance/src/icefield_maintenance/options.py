"""The options of each operation: a record for each, with the types, defaults and documentation.

The keywords of ``MaintenanceTable``, the options of commands, the arguments of ``CALL`` and a page of the reference
follow from these records.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import TYPE_CHECKING, Any

from icefield_maintenance.operation_options import PYTHON_ONLY, option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from icefield.expressions import BooleanExpression
    from icefield.manifest import ManifestFile
    from icefield.metadata import Timestamp
    from icefield.partitioning import SortOrder

    from icefield_maintenance import ConvertEqualityDeletesResult, RewriteDeletesResult
    from icefield_maintenance.compaction.policy import JobOrder, Strategy
    from icefield_maintenance.orphans.belonging import PrefixMismatch

_DRY_RUN = "Change nothing, and say what would be done."
_DELETES = "Only deletes of partitions that may hold such rows."


@dataclass(frozen=True, kw_only=True)
class CommitOptions:
    """The options of an operation that is a commit on a branch."""

    branch: str = option("main", "The branch; default: main.", metavar="NAME", argument="branch")
    snapshot_properties: Mapping[str, str] | None = option(
        None,
        "A property of the snapshot's summary.",
        "pair",
        command="--snapshot-property",
        is_repeatable=True,
    )
    dry_run: bool = option(False, _DRY_RUN, "flag")


@dataclass(frozen=True, kw_only=True)
class ExpireOptions:
    """The options of ``expire_snapshots``."""

    older_than: Timestamp | None = option(
        None,
        "Snapshots from before this time expire; default: what the table's properties say, or 5 days.",
        "time-or-age",
        argument="older_than",
    )
    retain_last: int | None = option(
        None, "Keep so many of each branch, whatever their age.", "count", argument="retain_last"
    )
    snapshot_ids: Iterable[int] = option(
        (),
        "Snapshots that expire, whatever their age.",
        "id",
        command="--snapshot",
        argument="snapshot_ids",
        is_repeatable=True,
    )
    clean_files: bool = option(
        True, "Delete the files that nothing refers to.", "flag", command="--keep-files", command_doc="Delete no file."
    )
    dry_run: bool = option(False, _DRY_RUN, "flag")


@dataclass(frozen=True, kw_only=True)
class RemoveOrphansOptions:
    """The options of ``remove_orphan_files``."""

    dry_run: bool = option(
        True,
        "List the files, and delete none.",
        "flag",
        command="--delete",
        command_doc="Delete them; without it they are listed only.",
        argument="dry_run",
    )
    older_than: Timestamp | None = option(
        None, "Files from before this time; default: three days ago.", "time-or-age", argument="older_than"
    )
    allow_recent: bool = option(False, "Take files of the last day too: no writer is at work.", "flag")
    location: str | None = option(
        None, "The folder to look into; default: the table's.", metavar="URI", argument="location"
    )
    equal_schemes: Mapping[str, str] | None = option(
        None,
        "Schemes that mean the same store: A: means B:.",
        "pair",
        command="--equal-scheme",
        metavar="A=B",
        argument="equal_schemes",
        is_repeatable=True,
    )
    equal_authorities: Mapping[str, str] | None = option(
        None,
        "Authorities that mean the same store: host A means B.",
        "pair",
        command="--equal-authority",
        metavar="A=B",
        argument="equal_authorities",
        is_repeatable=True,
    )
    prefix_mismatch: PrefixMismatch = option(
        "error",
        "What to do with files that may or may not be the table's: error, ignore or delete; default: error.",
        choices=("error", "ignore", "delete"),
        argument="prefix_mismatch_mode",
    )
    exclusive: bool = option(
        False,
        "No other table needs a file of the folder: take those of other and of dropped tables, too.",
        "flag",
        argument="exclusive",
    )


@dataclass(frozen=True, kw_only=True)
class RewriteOptions(CommitOptions):
    """The options of ``rewrite_data_files``."""

    strategy: Strategy = option(
        "binpack",
        "binpack keeps the order of rows, sort and zorder change it; default: binpack.",
        command_doc="bin-pack keeps the order of rows, sort and zorder change it; default: bin-pack, or what the order "
        "asks for.",
        choices=("binpack", "sort", "zorder"),
        argument="strategy",
    )
    sort_order: SortOrder | Any = option(
        None,
        "Such as 'ts desc nulls last'; default: the table's order.",
        command="--sort",
        metavar="FIELD",
        argument="sort_order",
        is_repeatable=True,
    )
    zorder_columns: Sequence[str] | str = option(
        (),
        "Cluster by all of these columns.",
        "names",
        command="--zorder",
        command_doc="Cluster by all of these columns, separated by commas.",
    )
    where: str | BooleanExpression | None = option(
        None, "Only files that may hold such rows.", metavar="FILTER", argument="where"
    )
    target_file_size_bytes: int | None = option(
        None,
        "The size of new files; default: as the table's properties say.",
        "count",
        command="--target-file-size",
        metavar="BYTES",
        entry="target-file-size-bytes",
    )
    min_file_size_bytes: int | None = option(
        None,
        "Smaller files are rewritten; default: 75 % of the target.",
        "count",
        command="--min-file-size",
        metavar="BYTES",
        entry="min-file-size-bytes",
    )
    max_file_size_bytes: int | None = option(
        None,
        "Larger files are rewritten; default: 180 % of the target.",
        "count",
        command="--max-file-size",
        metavar="BYTES",
        entry="max-file-size-bytes",
    )
    min_input_files: int = option(5, "The fewest files worth a rewrite; default: 5.", "count", entry="min-input-files")
    delete_file_threshold: int | None = option(
        None,
        "Rewrite files with so many delete files, whatever their size.",
        "count",
        entry="delete-file-threshold",
    )
    delete_ratio_threshold: float = option(
        0.3,
        "Rewrite files of whose rows so many are deleted; default: 0.3.",
        "number",
        metavar="RATIO",
        entry="delete-ratio-threshold",
    )
    max_file_group_size_bytes: int | None = option(
        None,
        "The most that is rewritten at once; default: as the strategy needs.",
        "count",
        command="--max-group-size",
        metavar="BYTES",
        entry="max-file-group-size-bytes",
    )
    max_rewritten_bytes: int | None = option(
        None,
        "The most that is rewritten in all: first the files that gain most for each byte; default: no limit.",
        "count",
        metavar="BYTES",
        entry="max-rewritten-bytes",
    )
    partial_progress: bool = option(
        False,
        "Commit what is done so far as it goes, not all at the end.",
        "flag",
        entry="partial-progress.enabled",
    )
    max_commits: int = option(
        10,
        "With partial progress: the most commits; default: 10.",
        "count",
        entry="partial-progress.max-commits",
    )
    max_failed_commits: int | None = option(
        None,
        "With partial progress: fail once more commits than these have failed; default: as many as there may be.",
        "count",
        entry="partial-progress.max-failed-commits",
    )
    max_concurrent_file_group_rewrites: int = option(
        1,
        "Rewrite so many groups of files at once, in the same memory; default: 1.",
        "count",
        command="--max-concurrent-groups",
    )
    rewrite_job_order: JobOrder = option(
        "none",
        "Which groups of files come first, by their bytes or number of files; default: none.",
        command="--job-order",
        choices=("none", "bytes-asc", "bytes-desc", "files-asc", "files-desc"),
        entry="rewrite-job-order",
    )
    rewrite_all: bool = option(
        False, "Rewrite every file, whatever its size.", "flag", command="--all", entry="rewrite-all"
    )
    use_starting_sequence_number: bool = option(
        True,
        "Let equality deletes that others commit meanwhile apply to the new files no more than to the old.",
        "flag",
        command="--new-sequence-number",
        command_doc="Let equality deletes that others commit meanwhile not apply to the new files.",
        entry="use-starting-sequence-number",
    )
    remove_dangling_deletes: bool = option(
        False,
        "At the end remove deletes that apply to no data file.",
        "flag",
        command="--remove-dangling",
        entry="remove-dangling-deletes",
    )
    output_spec_id: int | None = option(
        None,
        "Write by this partition spec; default: the table's.",
        "id",
        command="--output-spec",
        entry="output-spec-id",
    )


@dataclass(frozen=True, kw_only=True)
class RewriteManifestsOptions(CommitOptions):
    """The options of ``rewrite_manifests``."""

    spec_id: int | None = option(
        None, "Only manifests of this partition spec.", "integer", command="--spec", metavar="ID", argument="spec_id"
    )
    where: str | BooleanExpression | None = option(None, "Only manifests that may hold such rows.", metavar="FILTER")
    predicate: Callable[[ManifestFile], bool] | None = option(
        None, "Only manifests that the function accepts.", command=PYTHON_ONLY
    )
    cluster_by: Sequence[str] | str = option(
        (),
        "Partition fields that come first.",
        "names",
        metavar="FIELDS",
        argument="sort_by",
        command_doc="Partition fields that come first, separated by commas.",
    )


@dataclass(frozen=True, kw_only=True)
class RewriteDeletesOptions(CommitOptions):
    """The options of ``rewrite_position_delete_files``."""

    where: str | BooleanExpression | None = option(None, _DELETES, metavar="FILTER", argument="where")
    target_file_size: int | None = option(
        None,
        "The size of new files; default: as the table's properties say.",
        "count",
        metavar="BYTES",
        entry="target-file-size-bytes",
    )
    min_input_files: int = option(5, "The fewest files worth a rewrite; default: 5.", "count", entry="min-input-files")
    rewrite_all: bool = option(
        False, "Rewrite all, whatever their sizes.", "flag", command="--all", entry="rewrite-all"
    )


@dataclass(frozen=True, kw_only=True)
class ConvertDeletesOptions(CommitOptions):
    """The options of ``convert_equality_deletes``."""

    where: str | BooleanExpression | None = option(None, _DELETES, metavar="FILTER")


@dataclass(frozen=True, kw_only=True)
class RemoveDanglingOptions(CommitOptions):
    """The options of ``remove_dangling_deletes``."""

    after: Iterable[ConvertEqualityDeletesResult | RewriteDeletesResult] = option(
        (), "The results of other dry runs, whose files a dry run leaves out.", command=PYTHON_ONLY
    )


@dataclass(frozen=True, kw_only=True)
class TableStatsOptions:
    """The options of ``compute_table_stats``."""

    columns: Sequence[str] | str | None = option(
        None, "Count distinct values of these; default: of all that are primitive.", "names", argument="columns"
    )
    snapshot_id: int | None = option(
        None, "The snapshot; default: the current one.", "id", command="--snapshot", argument="snapshot_id"
    )


@dataclass(frozen=True, kw_only=True)
class PartitionStatsOptions:
    """The options of ``compute_partition_stats``."""

    snapshot_id: int | None = option(
        None, "The snapshot; default: the current one.", "id", command="--snapshot", argument="snapshot_id"
    )
    file_format: str | None = option(
        None, "The format of the file; default: as the table's properties say.", command=PYTHON_ONLY
    )
    incremental: bool = option(True, "Begin with the statistics of an ancestor.", "flag", command=PYTHON_ONLY)


@dataclass(frozen=True, kw_only=True)
class RewritePathOptions:
    """The options of ``rewrite_table_path``, which no command offers."""

    source_prefix: str = option(
        MISSING, "The folder below which the locations are.", command=PYTHON_ONLY, argument="source_prefix"
    )
    target_prefix: str = option(
        MISSING, "The folder below which the copy is.", command=PYTHON_ONLY, argument="target_prefix"
    )
    start_version: str | None = option(
        None,
        "The metadata file after which the copy begins; default: with the first.",
        command=PYTHON_ONLY,
        argument="start_version",
    )
    end_version: str | None = option(
        None, "The last metadata file; default: the current one.", command=PYTHON_ONLY, argument="end_version"
    )
    staging_location: str | None = option(
        None,
        "The folder of the metadata; default: a new one among the table's metadata.",
        command=PYTHON_ONLY,
        argument="staging_location",
    )
    create_file_list: bool = option(
        True, "Write a list of the files to copy.", "flag", command=PYTHON_ONLY, argument="create_file_list"
    )


@dataclass(frozen=True, kw_only=True)
class EraseOptions:
    """The options of ``erase``."""

    row_filter: str | BooleanExpression = option(
        MISSING, "The rows to erase, such as \"email = 'a@b.c'\".", metavar="FILTER", command="--where"
    )
    remove_tags: bool = option(False, "Remove tags that keep versions with such rows.", "flag")
    always: bool = option(False, "Also if no data file holds such a row: other files may hold its values.", "flag")


OPERATIONS: dict[str, type] = {
    "erase": EraseOptions,
    "expire_snapshots": ExpireOptions,
    "remove_orphan_files": RemoveOrphansOptions,
    "rewrite_data_files": RewriteOptions,
    "rewrite_manifests": RewriteManifestsOptions,
    "rewrite_position_delete_files": RewriteDeletesOptions,
    "convert_equality_deletes": ConvertDeletesOptions,
    "remove_dangling_deletes": RemoveDanglingOptions,
    "compute_table_stats": TableStatsOptions,
    "compute_partition_stats": PartitionStatsOptions,
    "rewrite_table_path": RewritePathOptions,
}
"""The record of options of each method of ``MaintenanceTable``."""

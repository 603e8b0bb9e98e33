"""The procedures of a catalog: names, parameters and columns of Java's; and ``CALL`` of ``ice.sql``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from icefield import Table
from icefield.errors import UnsupportedFeature
from icefield_maintenance import (
    ExpireOptions,
    PartitionStatsOptions,
    RemoveOrphansOptions,
    RewriteDeletesOptions,
    RewriteManifestsOptions,
    RewriteOptions,
    RewritePathOptions,
    TableStatsOptions,
)
from pyspark.sql import DataFrame

from icefield_spark.sql import maintenance_procedures as maintenance
from icefield_spark.sql import snapshot_procedures as snapshots
from icefield_spark.sql.adding_files import add_files, name_of, snapshot
from icefield_spark.sql.arguments import (
    BOOLEAN,
    INT,
    LONG,
    MAP,
    STRINGS,
    TIME,
    Parameter,
    checked,
    parameters_of,
    taken,
)
from icefield_spark.sql.changelog import create_changelog_view
from icefield_spark.sql.context import Rows, StatementContext
from icefield_spark.sql.parsing import Cursor

NAMESPACE: Final = "system"

_MOVED = "previous_snapshot_id bigint NOT NULL, current_snapshot_id bigint NOT NULL"
_SET = "previous_snapshot_id bigint, current_snapshot_id bigint NOT NULL"
_PUBLISHED = "source_snapshot_id bigint NOT NULL, current_snapshot_id bigint NOT NULL"


@dataclass(frozen=True)
class Procedure:
    """A procedure: a description, parameters, columns, and the function that computes its rows from arguments."""

    doc: str
    parameters: Sequence[Parameter]
    columns: str
    run: Callable[[StatementContext, dict[str, Any]], Rows]

    @property
    def description(self) -> str:
        """The description of the procedure and its parameters in one text.

        Some versions of Spark show nothing else of a procedure.
        """
        shown = (
            f"{each.name} ({each.kind}{', required' if each.required else ''}): {each.doc}" for each in self.parameters
        )
        return f"{self.doc} Arguments: {'; '.join(shown)}."


def call(context: StatementContext, cursor: Cursor) -> DataFrame:
    """``CALL``; the cursor stands after it."""
    parts = cursor.names("the name of a procedure")
    local = parts[1:] if context.names.is_catalog(parts[0]) else parts
    if len(local) != 2 or local[0].lower() != NAMESPACE:
        return context.passed(cursor)
    found = procedure(local)
    given = taken(context.spark, local[1].lower(), found.parameters, cursor)
    cursor.expect_end()
    return context.rows(found.columns, called(context, local, given))


def procedure(name: Sequence[str]) -> Procedure:
    """The procedure of a name. Raises ``UnsupportedFeature`` if there is no such procedure."""
    *above, last = [part.lower() for part in name]
    if above == [NAMESPACE] and last in _REFUSED:
        raise UnsupportedFeature(f"there is no procedure '{last}' here: {_REFUSED[last]}")
    if above != [NAMESPACE] or last not in PROCEDURES:
        known = ", ".join(sorted(PROCEDURES))
        raise UnsupportedFeature(f"there is no procedure '{'.'.join(name)}'; in {NAMESPACE} there are {known}")
    return PROCEDURES[last]


def called(context: StatementContext, name: Sequence[str], given: Mapping[str, Any]) -> Rows:
    """The rows of a call. ``given``: values by the names of parameters; None is omitted, times are ms since 1970 UTC.

    Raises ``InvalidArgument`` for a missing argument, ``UnsupportedFeature`` for an argument without support.
    """
    found = procedure(name)
    return found.run(context, checked(name[-1].lower(), found.parameters, given))


def _of_table(
    run: Callable[[StatementContext, Table, dict[str, Any]], Rows],
) -> Callable[[StatementContext, dict[str, Any]], Rows]:
    """A procedure on the table that the argument ``table`` names."""
    return lambda context, given: run(context, context.names.table(name_of(given.pop("table"))), given)


_TABLE = Parameter("table", doc="the name of the table", required=True)
_SNAPSHOT = Parameter("snapshot_id", LONG, "the current one, unless given")
_CONCURRENT = Parameter("max_concurrent_deletes", INT, "has no effect: files are deleted in bulk", ignored=True)
_STREAMED = Parameter("stream_results", BOOLEAN, "has no effect: results are never held at once", ignored=True)
_PARALLEL = Parameter("parallelism", INT, "has no effect", ignored=True)
_EXPIRE = parameters_of(ExpireOptions)
_ORPHANS = parameters_of(RemoveOrphansOptions)
_REWRITE = parameters_of(RewriteOptions)
_MANIFESTS = parameters_of(RewriteManifestsOptions)
_DELETES = parameters_of(RewriteDeletesOptions)
_TABLE_STATS = parameters_of(TableStatsOptions)
_PARTITION_STATS = parameters_of(PartitionStatsOptions)

PROCEDURES: Final[dict[str, Procedure]] = {
    "rollback_to_snapshot": Procedure(
        "Make an ancestor of the current snapshot the current one.",
        [_TABLE, Parameter("snapshot_id", LONG, "the ancestor", required=True)],
        _MOVED,
        _of_table(snapshots.moving(lambda update, given: update.rollback_to_snapshot(given["snapshot_id"]))),
    ),
    "rollback_to_timestamp": Procedure(
        "Make the snapshot that was the current one at a time the current one.",
        [_TABLE, Parameter("timestamp", TIME, "the time", required=True)],
        _MOVED,
        _of_table(snapshots.moving(lambda update, given: update.rollback_to_timestamp(given["timestamp"]))),
    ),
    "set_current_snapshot": Procedure(
        "Make any snapshot the current one.",
        [_TABLE, Parameter("snapshot_id", LONG, "the snapshot"), Parameter("ref", doc="its branch or tag instead")],
        _SET,
        _of_table(
            snapshots.moving(
                lambda update, given: update.set_current_snapshot(given.get("snapshot_id"), given.get("ref"))
            )
        ),
    ),
    "cherrypick_snapshot": Procedure(
        "Make the changes of a snapshot anew on top of the current one.",
        [_TABLE, Parameter("snapshot_id", LONG, "the snapshot", required=True)],
        _PUBLISHED,
        _of_table(snapshots.cherrypick_snapshot),
    ),
    "publish_changes": Procedure(
        "Make the changes that were staged under a wap.id on top of the current snapshot.",
        [_TABLE, Parameter("wap_id", doc="the id under which they were staged", required=True)],
        _PUBLISHED,
        _of_table(snapshots.publish_changes),
    ),
    "fast_forward": Procedure(
        "Move a branch forward to the snapshot of another branch.",
        [
            _TABLE,
            Parameter("branch", doc="the branch that moves", required=True),
            Parameter("to", doc="the branch or tag that it moves to", required=True),
        ],
        "branch_updated string NOT NULL, previous_ref bigint, updated_ref bigint NOT NULL",
        _of_table(snapshots.fast_forward),
    ),
    "ancestors_of": Procedure(
        "List a snapshot and those that it was made from.",
        [_TABLE, _SNAPSHOT],
        "snapshot_id bigint, timestamp bigint",
        _of_table(snapshots.ancestors_of),
    ),
    "expire_snapshots": Procedure(
        "Remove old snapshots, and delete the files that only they had.",
        [
            _TABLE,
            _EXPIRE["older_than"],
            _EXPIRE["retain_last"],
            _CONCURRENT,
            _STREAMED,
            _EXPIRE["snapshot_ids"],
            Parameter(
                "clean_expired_metadata",
                BOOLEAN,
                "only false",
                unsupported="columns and partition specs stay as they were",
            ),
        ],
        "deleted_data_files_count bigint, deleted_position_delete_files_count bigint, "
        "deleted_equality_delete_files_count bigint, deleted_manifest_files_count bigint, "
        "deleted_manifest_lists_count bigint, deleted_statistics_files_count bigint",
        _of_table(maintenance.expire_snapshots),
    ),
    "remove_orphan_files": Procedure(
        "Delete the files in the table's folder that no version of it has.",
        [
            _TABLE,
            _ORPHANS["older_than"],
            _ORPHANS["location"],
            replace(_ORPHANS["dry_run"], doc=f"{_ORPHANS['dry_run'].doc}; false by default"),
            _CONCURRENT,
            Parameter(
                "file_list_view", unsupported="the store is listed anew; location says which folder of it", doc="none"
            ),
            _ORPHANS["equal_schemes"],
            _ORPHANS["equal_authorities"],
            _ORPHANS["prefix_mismatch_mode"],
            Parameter("prefix_listing", BOOLEAN, "has no effect", ignored=True),
            _STREAMED,
            # This comes last, since the other parameters have fixed positions.
            _ORPHANS["exclusive"],
        ],
        "orphan_file_location string NOT NULL",
        _of_table(maintenance.remove_orphan_files),
    ),
    "rewrite_data_files": Procedure(
        "Write data files anew: small ones together, and sorted where that is asked for.",
        [
            _TABLE,
            _REWRITE["strategy"],
            replace(_REWRITE["sort_order"], doc="as in ORDER BY, or zorder(a, b); default: the table's order"),
            Parameter("options", MAP, "such as rewrite-all and target-file-size-bytes"),
            _REWRITE["where"],
            _REWRITE["branch"],
        ],
        "rewritten_data_files_count int NOT NULL, added_data_files_count int NOT NULL, "
        "rewritten_bytes_count bigint NOT NULL, failed_data_files_count int NOT NULL, "
        "removed_delete_files_count int NOT NULL",
        _of_table(maintenance.rewrite_data_files),
    ),
    "rewrite_manifests": Procedure(
        "Write manifests anew, with their entries by partition.",
        [
            _TABLE,
            Parameter("use_caching", BOOLEAN, "has no effect", ignored=True),
            _MANIFESTS["spec_id"],
            _MANIFESTS["sort_by"],
        ],
        "rewritten_manifests_count int NOT NULL, added_manifests_count int NOT NULL",
        _of_table(maintenance.rewrite_manifests),
    ),
    "rewrite_position_delete_files": Procedure(
        "Write position delete files anew, without deletes in files that are gone.",
        [_TABLE, Parameter("options", MAP, "such as rewrite-all and target-file-size-bytes"), _DELETES["where"]],
        "rewritten_delete_files_count int NOT NULL, added_delete_files_count int NOT NULL, "
        "rewritten_bytes_count bigint NOT NULL, added_bytes_count bigint NOT NULL",
        _of_table(maintenance.rewrite_position_delete_files),
    ),
    "compute_table_stats": Procedure(
        "Find how many distinct values columns have, for optimizers.",
        [_TABLE, _TABLE_STATS["snapshot_id"], _TABLE_STATS["columns"]],
        "statistics_file string",
        _of_table(maintenance.compute_table_stats),
    ),
    "compute_partition_stats": Procedure(
        "Find the numbers of rows and files of each partition.",
        [_TABLE, _PARTITION_STATS["snapshot_id"]],
        "partition_statistics_file string",
        _of_table(maintenance.compute_partition_stats),
    ),
    "rewrite_table_path": Procedure(
        "Write the metadata of a copy of the table that is at another place.",
        [_TABLE, *parameters_of(RewritePathOptions).values()],
        "latest_version string NOT NULL, file_list_location string NOT NULL, "
        "rewritten_manifest_file_paths_count int NOT NULL, rewritten_delete_file_paths_count int NOT NULL",
        _of_table(maintenance.rewrite_table_path),
    ),
    "create_changelog_view": Procedure(
        "Make a temporary view of the rows that changed between two snapshots.",
        [
            _TABLE,
            Parameter("changelog_view", doc="its name, <table>_changes by default"),
            Parameter("options", MAP, "start-snapshot-id, end-snapshot-id, start-timestamp, end-timestamp"),
            Parameter("compute_updates", BOOLEAN, "whether a row before and after is shown as an update"),
            Parameter("identifier_columns", STRINGS, "the key of a row, the table's identifier fields by default"),
            Parameter("net_changes", BOOLEAN, "whether changes that were undone are left out; false by default"),
        ],
        "changelog_view string NOT NULL",
        _of_table(create_changelog_view),
    ),
    "add_files": Procedure(
        "Take files into the table where they are.",
        [
            _TABLE,
            Parameter("source_table", doc="a table of Spark's, or `parquet`.`folder`", required=True),
            Parameter("partition_filter", MAP, "only the partitions of these values", nulls=True),
            Parameter(
                "check_duplicate_files", BOOLEAN, "whether files that the table has are refused; true by default"
            ),
            _PARALLEL,
        ],
        "added_files_count bigint NOT NULL, changed_partition_count bigint",
        _of_table(add_files),
    ),
    "register_table": Procedure(
        "Make a table of a metadata file.",
        [
            Parameter("table", doc="the name of the new table", required=True),
            Parameter("metadata_file", doc="the location of the file", required=True),
        ],
        "current_snapshot_id bigint, total_records_count bigint, total_data_files_count bigint",
        snapshots.register_table,
    ),
    "snapshot": Procedure(
        "Make a table of the files of a table of Spark's, which stays as it is.",
        [
            Parameter("source_table", doc="the table of Spark's", required=True),
            Parameter("table", doc="the name of the new table", required=True),
            Parameter("location", doc="the folder of the new table"),
            Parameter("properties", MAP, "of the new table"),
            _PARALLEL,
            Parameter(
                "ignore_missing_files",
                BOOLEAN,
                "only false",
                unsupported="files are looked at before they are taken",
            ),
        ],
        "imported_files_count bigint NOT NULL",
        snapshot,
    ),
}

_REFUSED: Final = {
    "migrate": "Spark's own catalog cannot hold the new table under the name of the old one. CALL system.snapshot "
    "makes one of the same files in this catalog; once the old one is gone, set gc.enabled to true",
}

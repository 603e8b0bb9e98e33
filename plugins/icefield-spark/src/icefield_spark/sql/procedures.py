"""``CALL catalog.system.procedure(...)``: upkeep and snapshots, with the names and columns of Java's procedures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from icefield import Table
from icefield.errors import InvalidArgument, NoSuchSnapshot, UnsupportedFeature
from icefield.expressions import BooleanExpression
from pyspark.sql import DataFrame

from icefield_spark.sql.adding_files import add_files, name_of, snapshot
from icefield_spark.sql.arguments import BOOLEAN, LONG, LONGS, MAP, STRING, STRINGS, TIME, Parameter, options, taken
from icefield_spark.sql.changelog import create_changelog_view
from icefield_spark.sql.columns import filter_of, spelling_of
from icefield_spark.sql.context import Context
from icefield_spark.sql.parsing import Cursor, Statement
from icefield_spark.sql.terms import term
from icefield_spark.upkeep import maintenance_of

Rows = Sequence[Sequence[Any]]

_TABLE = Parameter("table", required=True)
_MOVED = "previous_snapshot_id bigint NOT NULL, current_snapshot_id bigint NOT NULL"
_SET = "previous_snapshot_id bigint, current_snapshot_id bigint NOT NULL"
_PUBLISHED = "source_snapshot_id bigint NOT NULL, current_snapshot_id bigint NOT NULL"
_REWRITE_OPTIONS: dict[str, tuple[str, type]] = {
    "target-file-size-bytes": ("target_file_size_bytes", int),
    "min-file-size-bytes": ("min_file_size_bytes", int),
    "max-file-size-bytes": ("max_file_size_bytes", int),
    "min-input-files": ("min_input_files", int),
    "delete-file-threshold": ("delete_file_threshold", int),
    "delete-ratio-threshold": ("delete_ratio_threshold", float),
    "max-file-group-size-bytes": ("max_file_group_size_bytes", int),
    "partial-progress.enabled": ("partial_progress", bool),
    "partial-progress.max-commits": ("max_commits", int),
    "rewrite-all": ("rewrite_all", bool),
    "use-starting-sequence-number": ("use_starting_sequence_number", bool),
    "remove-dangling-deletes": ("remove_dangling_deletes", bool),
    "partial-progress.max-failed-commits": ("max_failed_commits", int),
    "rewrite-job-order": ("rewrite_job_order", str),
    "output-spec-id": ("output_spec_id", int),
}
_DELETE_OPTIONS: dict[str, tuple[str, type]] = {
    "target-file-size-bytes": ("target_file_size", int),
    "min-input-files": ("min_input_files", int),
    "rewrite-all": ("rewrite_all", bool),
}
_IGNORED_OPTIONS = ("max-concurrent-file-group-rewrites",)


@dataclass(frozen=True)
class Procedure:
    """A procedure: its parameters, its columns, and what it does with a table and arguments."""

    parameters: Sequence[Parameter]
    columns: str
    run: Callable[[Context, Table, dict[str, Any]], Rows]


def call(context: Context, cursor: Cursor) -> DataFrame:
    """``CALL``; the cursor stands after it."""
    parts = cursor.names("the name of a procedure")
    local = parts[1:] if context.names.is_catalog(parts[0]) else parts
    if len(local) != 2 or local[0].lower() != "system":
        return context.passed(cursor)
    name = local[1].lower()
    if name in _REFUSED:
        raise UnsupportedFeature(f"there is no procedure '{name}' here: {_REFUSED[name]}")
    if name in _WITHOUT_TABLE:
        return _WITHOUT_TABLE[name](context, cursor)
    found = PROCEDURES.get(name)
    if found is None:
        raise UnsupportedFeature(
            f"there is no procedure '{name}'; there are {', '.join(sorted((*PROCEDURES, *_WITHOUT_TABLE)))}"
        )
    given = taken(context.spark, name, found.parameters, cursor)
    cursor.expect_end()
    table = context.names.table(name_of(given.pop("table")))
    return context.rows(found.columns, found.run(context, table, given))


def _register(context: Context, cursor: Cursor) -> DataFrame:
    parameters = [_TABLE, Parameter("metadata_file", required=True)]
    given = taken(context.spark, "register_table", parameters, cursor)
    cursor.expect_end()
    table = context.catalog.register_table(context.names.local(name_of(given["table"])), given["metadata_file"])
    snapshot = table.current_snapshot()
    summary = {} if snapshot is None else snapshot.summary
    row = [
        None if snapshot is None else snapshot.snapshot_id,
        int(summary.get("total-records", 0)),
        int(summary.get("total-data-files", 0)),
    ]
    columns = "current_snapshot_id bigint, total_records_count bigint, total_data_files_count bigint"
    return context.rows(columns, [row])


def _snapshot(context: Context, cursor: Cursor) -> DataFrame:
    parameters = [
        Parameter("source_table", required=True),
        _TABLE,
        Parameter("location"),
        Parameter("properties", MAP),
        Parameter("parallelism", LONG, ignored=True),
        Parameter("ignore_missing_files", BOOLEAN, unsupported="files are looked at before they are taken"),
    ]
    given = taken(context.spark, "snapshot", parameters, cursor)
    cursor.expect_end()
    return context.rows("imported_files_count bigint NOT NULL", snapshot(context, given))


def _current(table: Table) -> int | None:
    snapshot = table.current_snapshot()
    return None if snapshot is None else snapshot.snapshot_id


def _moved(change: Callable[[Any, dict[str, Any]], Any]) -> Callable[[Context, Table, dict[str, Any]], Rows]:
    """A procedure that makes another snapshot current."""

    def run(context: Context, table: Table, given: dict[str, Any]) -> Rows:
        before = _current(table)
        with table.manage_snapshots() as update:
            change(update, given)
        return [[before, _current(table)]]

    return run


def _cherry_pick(context: Context, table: Table, given: dict[str, Any]) -> Rows:
    with table.manage_snapshots() as update:
        update.cherry_pick(given["snapshot_id"])
    return [[given["snapshot_id"], _current(table)]]


def _publish(context: Context, table: Table, given: dict[str, Any]) -> Rows:
    staged = [each.snapshot_id for each in table.snapshots() if each.summary.get("wap.id") == given["wap_id"]]
    with table.manage_snapshots() as update:
        update.publish_changes(given["wap_id"])
    return [[staged[-1] if staged else None, _current(table)]]


def _fast_forward(context: Context, table: Table, given: dict[str, Any]) -> Rows:
    before = table.refs().get(given["branch"])
    with table.manage_snapshots() as update:
        update.fast_forward(given["branch"], given["to"])
    after = table.refs()[given["branch"]].snapshot_id
    return [[given["branch"], None if before is None else before.snapshot_id, after]]


def _ancestors(context: Context, table: Table, given: dict[str, Any]) -> Rows:
    start = given.get("snapshot_id", _current(table))
    if start is not None and table.snapshot_by_id(start) is None:
        raise NoSuchSnapshot(f"the table has no snapshot {start}", snapshot_id=start)
    return [[each.snapshot_id, each.timestamp_ms] for each in table.metadata.ancestors(start)]


def _expire(context: Context, table: Table, given: dict[str, Any]) -> Rows:
    made = maintenance_of(context.spark, table).expire_snapshots(
        given.get("older_than"), given.get("retain_last"), given.get("snapshot_ids") or ()
    )
    return [
        [
            made.data_files,
            made.position_delete_files + made.deletion_vector_files,
            made.equality_delete_files,
            made.manifests,
            made.manifest_lists,
            made.statistics_files + made.partition_statistics_files,
        ]
    ]


def _orphans(context: Context, table: Table, given: dict[str, Any]) -> Rows:
    mismatch = given.get("prefix_mismatch_mode", "error").lower()
    made = maintenance_of(context.spark, table).remove_orphan_files(
        given.get("older_than"),
        given.get("location"),
        dry_run=given.get("dry_run", False),
        equal_schemes=given.get("equal_schemes"),
        equal_authorities=given.get("equal_authorities"),
        prefix_mismatch=mismatch,
        exclusive=given.get("exclusive", False),
    )
    return [[location] for location in made.orphans.column("location").to_pylist()]


def _rewrite(context: Context, table: Table, given: dict[str, Any]) -> Rows:
    chosen = options("rewrite_data_files", given.get("options", {}), _REWRITE_OPTIONS, _IGNORED_OPTIONS)
    order = given.get("sort_order")
    strategy = given.get("strategy", "binpack" if order is None else "sort").lower()
    if order is not None and strategy == "binpack":
        raise InvalidArgument("a sort_order belongs to the strategy 'sort'")
    if order is not None:
        columns = _zorder(order)
        if columns:
            strategy, chosen["zorder_columns"] = (
                "zorder",
                [spelling_of(context, table.schema(), each) for each in columns],
            )
        else:
            chosen["sort_order"] = [_spelt(context, table, item) for item in Cursor(Statement(order)).items()]
    if "branch" in given:
        chosen["branch"] = given["branch"]
    made = maintenance_of(context.spark, table).rewrite_data_files(
        strategy, where=_where(context, table, given), **chosen
    )
    return [
        [
            made.rewritten_data_files,
            made.added_data_files,
            made.rewritten_bytes,
            made.failed_data_files,
            made.removed_delete_files,
        ]
    ]


def _spelt(context: Context, table: Table, item: Cursor) -> str:
    """A term of a sort order, with its column as the table spells it."""
    direction = Cursor(item.statement, item.at, item.end)
    column, _ = term(direction)
    own, written = spelling_of(context, table.schema(), column), item.statement.between(item.at, direction.at)
    if own != column:
        # The last mention of the column: before it stands at most the name of its transform.
        before, found, after = written.rpartition(column)
        written = f"{before}{own}{after}" if found else written
    return f"{written} {direction.rest()}".rstrip()


def _where(context: Context, table: Table, given: dict[str, Any]) -> BooleanExpression | str | None:
    """The condition on the files, in Spark's words or in those of Iceberg's filters here."""
    condition = given.get("where")
    if condition is None:
        return None
    found = filter_of(context, table.schema(), condition)
    return condition if found is None else found


def _zorder(order: str) -> list[str]:
    cursor = Cursor(Statement(order))
    if not cursor.takes("ZORDER"):
        return []
    return [term(item)[0] for item in cursor.enclosed().items()]


def _rewrite_manifests(context: Context, table: Table, given: dict[str, Any]) -> Rows:
    made = maintenance_of(context.spark, table).rewrite_manifests(
        given.get("spec_id"), cluster_by=given.get("sort_by") or ()
    )
    return [[made.rewritten_manifests, made.added_manifests]]


def _rewrite_deletes(context: Context, table: Table, given: dict[str, Any]) -> Rows:
    chosen = options("rewrite_position_delete_files", given.get("options", {}), _DELETE_OPTIONS, _IGNORED_OPTIONS)
    made = maintenance_of(context.spark, table).rewrite_position_delete_files(_where(context, table, given), **chosen)
    return [
        [
            made.rewritten_position_delete_files + made.rewritten_deletion_vectors,
            made.added_position_delete_files + made.added_deletion_vectors,
            made.rewritten_bytes,
            made.added_bytes,
        ]
    ]


def _rewrite_table_path(context: Context, table: Table, given: dict[str, Any]) -> Rows:
    made = table.maintenance.rewrite_table_path(**given)
    place = made.file_list_location or "N/A"
    return [[made.latest_version, place, made.rewritten_manifests, made.rewritten_delete_files]]


def _table_stats(context: Context, table: Table, given: dict[str, Any]) -> Rows:
    made = maintenance_of(context.spark, table).compute_table_stats(given.get("columns"), given.get("snapshot_id"))
    return [] if made is None else [[made.statistics_path]]


def _partition_stats(context: Context, table: Table, given: dict[str, Any]) -> Rows:
    made = maintenance_of(context.spark, table).compute_partition_stats(given.get("snapshot_id"))
    return [] if made is None else [[made.statistics_path]]


def _changelog(context: Context, table: Table, given: dict[str, Any]) -> Rows:
    return [[create_changelog_view(context, table, given)]]


_CONCURRENT = Parameter("max_concurrent_deletes", LONG, ignored=True)
_SNAPSHOT = Parameter("snapshot_id", LONG)

PROCEDURES: dict[str, Procedure] = {
    "rollback_to_snapshot": Procedure(
        [_TABLE, Parameter("snapshot_id", LONG, required=True)],
        _MOVED,
        _moved(lambda update, given: update.rollback_to_snapshot(given["snapshot_id"])),
    ),
    "rollback_to_timestamp": Procedure(
        [_TABLE, Parameter("timestamp", TIME, required=True)],
        _MOVED,
        _moved(lambda update, given: update.rollback_to_timestamp(given["timestamp"])),
    ),
    "set_current_snapshot": Procedure(
        [_TABLE, _SNAPSHOT, Parameter("ref")],
        _SET,
        _moved(lambda update, given: update.set_current_snapshot(given.get("snapshot_id"), given.get("ref"))),
    ),
    "cherrypick_snapshot": Procedure([_TABLE, Parameter("snapshot_id", LONG, required=True)], _PUBLISHED, _cherry_pick),
    "publish_changes": Procedure([_TABLE, Parameter("wap_id", required=True)], _PUBLISHED, _publish),
    "fast_forward": Procedure(
        [_TABLE, Parameter("branch", required=True), Parameter("to", required=True)],
        "branch_updated string NOT NULL, previous_ref bigint, updated_ref bigint NOT NULL",
        _fast_forward,
    ),
    "ancestors_of": Procedure([_TABLE, _SNAPSHOT], "snapshot_id bigint, timestamp bigint", _ancestors),
    "expire_snapshots": Procedure(
        [
            _TABLE,
            Parameter("older_than", TIME),
            Parameter("retain_last", LONG),
            _CONCURRENT,
            Parameter("stream_results", BOOLEAN, ignored=True),
            Parameter("snapshot_ids", LONGS),
            Parameter("clean_expired_metadata", BOOLEAN, unsupported="columns and partition specs stay as they were"),
        ],
        "deleted_data_files_count bigint, deleted_position_delete_files_count bigint, "
        "deleted_equality_delete_files_count bigint, deleted_manifest_files_count bigint, "
        "deleted_manifest_lists_count bigint, deleted_statistics_files_count bigint",
        _expire,
    ),
    "remove_orphan_files": Procedure(
        [
            _TABLE,
            Parameter("older_than", TIME),
            Parameter("location"),
            Parameter("dry_run", BOOLEAN),
            _CONCURRENT,
            Parameter("file_list_view", unsupported="the store is listed anew; location says which folder of it"),
            Parameter("equal_schemes", MAP),
            Parameter("equal_authorities", MAP),
            Parameter("prefix_mismatch_mode"),
            Parameter("prefix_listing", BOOLEAN, ignored=True),
            Parameter("stream_results", BOOLEAN, ignored=True),
            Parameter("exclusive", BOOLEAN),  # last, as the others have places of their own
        ],
        "orphan_file_location string NOT NULL",
        _orphans,
    ),
    "rewrite_data_files": Procedure(
        [
            _TABLE,
            Parameter("strategy"),
            Parameter("sort_order"),
            Parameter("options", MAP),
            Parameter("where"),
            Parameter("branch"),
        ],
        "rewritten_data_files_count int NOT NULL, added_data_files_count int NOT NULL, "
        "rewritten_bytes_count bigint NOT NULL, failed_data_files_count int NOT NULL, "
        "removed_delete_files_count int NOT NULL",
        _rewrite,
    ),
    "rewrite_manifests": Procedure(
        [
            _TABLE,
            Parameter("use_caching", BOOLEAN, ignored=True),
            Parameter("spec_id", LONG),
            Parameter("sort_by", STRINGS),
        ],
        "rewritten_manifests_count int NOT NULL, added_manifests_count int NOT NULL",
        _rewrite_manifests,
    ),
    "rewrite_position_delete_files": Procedure(
        [_TABLE, Parameter("options", MAP), Parameter("where")],
        "rewritten_delete_files_count int NOT NULL, added_delete_files_count int NOT NULL, "
        "rewritten_bytes_count bigint NOT NULL, added_bytes_count bigint NOT NULL",
        _rewrite_deletes,
    ),
    "compute_table_stats": Procedure(
        [_TABLE, _SNAPSHOT, Parameter("columns", STRINGS)], "statistics_file string", _table_stats
    ),
    "compute_partition_stats": Procedure([_TABLE, _SNAPSHOT], "partition_statistics_file string", _partition_stats),
    "rewrite_table_path": Procedure(
        [
            _TABLE,
            Parameter("source_prefix", required=True),
            Parameter("target_prefix", required=True),
            Parameter("start_version"),
            Parameter("end_version"),
            Parameter("staging_location"),
            Parameter("create_file_list", BOOLEAN),
        ],
        "latest_version string NOT NULL, file_list_location string NOT NULL, "
        "rewritten_manifest_file_paths_count int NOT NULL, rewritten_delete_file_paths_count int NOT NULL",
        _rewrite_table_path,
    ),
    "create_changelog_view": Procedure(
        [
            _TABLE,
            Parameter("changelog_view"),
            Parameter("options", MAP),
            Parameter("compute_updates", BOOLEAN),
            Parameter("identifier_columns", STRINGS),
            Parameter("net_changes", BOOLEAN),
        ],
        "changelog_view string NOT NULL",
        _changelog,
    ),
    "add_files": Procedure(
        [
            _TABLE,
            Parameter("source_table", STRING, required=True),
            Parameter("partition_filter", MAP),
            Parameter("check_duplicate_files", BOOLEAN),
            Parameter("parallelism", LONG, ignored=True),
        ],
        "added_files_count bigint NOT NULL, changed_partition_count bigint",
        add_files,
    ),
}

_WITHOUT_TABLE: dict[str, Callable[[Context, Cursor], DataFrame]] = {"register_table": _register, "snapshot": _snapshot}
_REFUSED = {
    "migrate": "Spark's own catalog cannot hold the new table under the name of the old one. CALL system.snapshot "
    "makes one of the same files in this catalog; once the old one is gone, set gc.enabled to true",
}

"""Procedures of maintenance. Spark's executors do the work."""

from __future__ import annotations

from typing import Any

from icefield import Schema, Table
from icefield.errors import InvalidArgument
from icefield.expressions import BooleanExpression
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
from pyspark.errors import PySparkException

from icefield_spark.catalog.predicates import Filters
from icefield_spark.comparisons import Side
from icefield_spark.conditions import said_of
from icefield_spark.maintenance import maintenance_of
from icefield_spark.sql.arguments import keywords_of, options
from icefield_spark.sql.context import Rows, StatementContext
from icefield_spark.sql.parsing import Cursor, Statement
from icefield_spark.sql.terms import term
from icefield_spark.types import to_spark_schema
from icefield_spark.writing import is_case_sensitive

_IGNORED_OPTIONS = ("max-concurrent-file-group-rewrites",)


def expire_snapshots(context: StatementContext, table: Table, given: dict[str, Any]) -> Rows:
    """Remove old snapshots, and delete the files that only they had."""
    made = maintenance_of(context.spark, table).expire_snapshots(**keywords_of(ExpireOptions, given))
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


def remove_orphan_files(context: StatementContext, table: Table, given: dict[str, Any]) -> Rows:
    """Delete the files that no version of the table has."""
    chosen = {"dry_run": False, **keywords_of(RemoveOrphansOptions, given)}
    if "prefix_mismatch" in chosen:
        chosen["prefix_mismatch"] = chosen["prefix_mismatch"].lower()
    made = maintenance_of(context.spark, table).remove_orphan_files(**chosen)
    return [[location] for location in made.orphans.column("location").to_pylist()]


def rewrite_data_files(context: StatementContext, table: Table, given: dict[str, Any]) -> Rows:
    """Rewrite data files, in better sizes or sorted."""
    chosen = options("rewrite_data_files", given.get("options", {}), RewriteOptions, _IGNORED_OPTIONS)
    order = given.get("sort_order")
    strategy = given.get("strategy", "binpack" if order is None else "sort").lower()
    if order is not None and strategy == "binpack":
        raise InvalidArgument("a sort_order belongs to the strategy 'sort'")
    if order is not None:
        columns = _zorder(order)
        if columns:
            strategy, chosen["zorder_columns"] = (
                "zorder",
                [_spelling(context, table.schema(), each) for each in columns],
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


def _spelt(context: StatementContext, table: Table, item: Cursor) -> str:
    """A term of a sort order, with its column as the table spells it."""
    direction = Cursor(item.statement, item.at, item.end)
    column, _ = term(direction)
    own, written = _spelling(context, table.schema(), column), item.statement.between(item.at, direction.at)
    if own != column:
        # The last mention of the name is the column: only the name of its transform can come before it.
        before, found, after = written.rpartition(column)
        written = f"{before}{own}{after}" if found else written
    return f"{written} {direction.rest()}".rstrip()


def _spelling(context: StatementContext, schema: Schema, name: str) -> str:
    """The schema's own spelling of a column or nested field; the unchanged name if there is no such field."""
    if is_case_sensitive(context.spark) or not schema.has_field(name, False) or schema.has_field(name):
        return name
    return str(schema.find_column_name(schema.find_field(name, False).field_id))


def _where(context: StatementContext, table: Table, given: dict[str, Any]) -> BooleanExpression | str | None:
    """The condition on the files, written in Spark's SQL or as a filter string of Icefield."""
    condition = given.get("where")
    if condition is None:
        return None
    schema = table.schema()
    try:
        said = said_of(context.spark, condition, Side(table.name()[-1], to_spark_schema(schema)))
    except PySparkException:
        return condition  # type: ignore[no-any-return]
    found = Filters(schema).exact(said.predicates) if said.is_whole else None
    return condition if found is None else found


def _zorder(order: str) -> list[str]:
    cursor = Cursor(Statement(order))
    if not cursor.takes("ZORDER"):
        return []
    return [term(item)[0] for item in cursor.enclosed().items()]


def rewrite_manifests(context: StatementContext, table: Table, given: dict[str, Any]) -> Rows:
    """Rewrite manifests."""
    made = maintenance_of(context.spark, table).rewrite_manifests(**keywords_of(RewriteManifestsOptions, given))
    return [[made.rewritten_manifests, made.added_manifests]]


def rewrite_position_delete_files(context: StatementContext, table: Table, given: dict[str, Any]) -> Rows:
    """Rewrite position deletes, without the deletes of rows that are gone."""
    chosen = options("rewrite_position_delete_files", given.get("options", {}), RewriteDeletesOptions, _IGNORED_OPTIONS)
    made = maintenance_of(context.spark, table).rewrite_position_delete_files(_where(context, table, given), **chosen)
    return [
        [
            made.rewritten_position_delete_files + made.rewritten_deletion_vectors,
            made.added_position_delete_files + made.added_deletion_vectors,
            made.rewritten_bytes,
            made.added_bytes,
        ]
    ]


def rewrite_table_path(context: StatementContext, table: Table, given: dict[str, Any]) -> Rows:
    """Write the metadata of a copy of the table at another place."""
    made = table.maintenance.rewrite_table_path(**keywords_of(RewritePathOptions, given))
    place = made.file_list_location or "N/A"
    return [[made.latest_version, place, made.rewritten_manifests, made.rewritten_delete_files]]


def compute_table_stats(context: StatementContext, table: Table, given: dict[str, Any]) -> Rows:
    """Compute how many distinct values columns have."""
    made = maintenance_of(context.spark, table).compute_table_stats(**keywords_of(TableStatsOptions, given))
    return [] if made is None else [[made.statistics_path]]


def compute_partition_stats(context: StatementContext, table: Table, given: dict[str, Any]) -> Rows:
    """Compute the statistics of partitions."""
    made = maintenance_of(context.spark, table).compute_partition_stats(**keywords_of(PartitionStatsOptions, given))
    return [] if made is None else [[made.statistics_path]]

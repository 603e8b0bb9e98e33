"""Changes of rows of a table, from the locations of removed rows to the commit.

Merge-on-read marks removed rows in delete files; copy-on-write rewrites their files without them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc
from icefield.errors import UnsupportedFeature
from icefield.expressions import AlwaysTrue, BooleanExpression, In
from icefield.metadata import MAIN_BRANCH
from icefield.scan import TableScan
from icefield.toolkit import distinct
from icefield.transaction import Transaction, WriteResult
from icefield.writing import (
    DataFile,
    DeleteContext,
    DeletedRows,
    WriteContext,
    write_deletion_vectors,
    write_position_deletes,
)
from pyspark.sql import SparkSession

from icefield_spark.numbered import found_by_filter
from icefield_spark.places import Plan, Positions
from icefield_spark.rewriting import LINEAGE, rewrite_without
from icefield_spark.writing import APPLICATION, ENGINE, spark_write_context

if TYPE_CHECKING:  # a worker needs no catalog
    from icefield import Table


@dataclass
class Target:
    """The table that is changed, and the data files that its plans have met."""

    table: Table
    branch: str
    kind: str
    """``delete``, ``update`` or ``merge``; selects the table's properties, such as ``write.delete.mode``."""
    plan: Plan = field(default_factory=Plan)
    isolation_level: str | None = None
    """Overrides the table's property."""
    strings: Mapping[str, str] = field(default_factory=dict)
    """For the summary of the snapshot. With a ``wap.id`` among them the kernel stages it."""

    def __post_init__(self) -> None:
        self.snapshot_id = self.table.metadata.head(self.branch)
        self.marks = self.table.properties.get(f"write.{self.kind}.mode", "copy-on-write") == "merge-on-read"
        if self.marks and self.table.format_version < 2:
            raise UnsupportedFeature("a table of format version 1 has no merge-on-read; upgrade it to 2 or 3")

    @property
    def is_serializable(self) -> bool:
        """Whether concurrently added rows are conflicts."""
        level = self.table.properties.get(f"write.{self.kind}.isolation-level", "serializable")
        return (self.isolation_level or level) == "serializable"

    @property
    def lineage(self) -> tuple[str, ...]:
        """The columns by which rows keep their identity."""
        return LINEAGE if self.table.format_version >= 3 else ()

    @property
    def kept_of_rows(self) -> tuple[str, ...]:
        """The columns of lineage that a changed row keeps: its id. It inherits the number of the commit."""
        return () if self.kind == "delete" else self.lineage[:1]

    def scan(self, where: BooleanExpression | None = None, *, case_sensitive: bool = True) -> TableScan:
        """A scan of the current state of the branch."""
        ref = None if self.branch == MAIN_BRANCH else self.branch
        row_filter = AlwaysTrue() if where is None else where
        return self.table.scan(row_filter=row_filter, ref=ref, case_sensitive=case_sensitive)

    def write_context(self) -> WriteContext:
        """The context for writing rows of the table, which may carry their lineage."""
        context = spark_write_context(self.table)
        return context.with_row_lineage() if self.lineage else context


def apply_changes(
    session: SparkSession,
    target: Target,
    files: list[DataFile],
    gone: Mapping[str, Positions],
    transaction: Transaction[Table],
    *,
    branch: str | None,
    whole: Collection[str] = (),
    concern: BooleanExpression | None = None,
    strings: Mapping[str, str] | None = None,
    updated: int = 0,
) -> WriteResult:
    """Stage new files, the removal of rows at positions of old files, and the removal of ``whole`` files.

    ``updated`` of the rows in the new files replace rows at these positions. The commit completes the result.
    ``concern`` holds for every row that was read, for the checks of concurrent commits. ``branch`` is the branch of the
    commit; None stages the snapshot.
    """
    if not files and not gone and not whole:
        return WriteResult()
    condition = AlwaysTrue() if concern is None else concern
    update = transaction.update_snapshot(_summary(session, target, strings), branch)
    dropped = {path for path, rows in gone.items() if len(rows) == target.plan.task(path).file.record_count}
    rest = {path: rows for path, rows in gone.items() if path not in dropped}
    dropped.update(whole)
    action: Any = update.row_delta() if target.marks else update.overwrite()
    action.count_rows(
        inserted=sum(file.record_count for file in files) - updated,
        updated=updated,
        deleted=None if whole else sum(map(len, gone.values())) - updated,
    )
    result: WriteResult = action.write_result
    if target.marks:
        _mark(action, target, files, dropped, rest, condition, transaction)
        return result
    if rest:
        context = target.write_context()
        files = files + rewrite_without(session, target, target.plan, rest, context, transaction).files
    action.add_fresh(files).delete_file(*dropped, *rest)
    action.validate_from_snapshot(target.snapshot_id).conflict_detection_filter(condition)
    action.validate_no_conflicting_deletes()
    if target.is_serializable:
        action.validate_no_conflicting_data()
    action.commit()
    return result


def delete_where(
    session: SparkSession,
    target: Target,
    where: BooleanExpression,
    *,
    strings: Mapping[str, str] | None = None,
    case_sensitive: bool = True,
) -> WriteResult:
    """Delete the rows that match a filter, in one commit.

    Files that match as a whole according to their manifests need no job.
    """
    with target.table.transaction() as transaction:
        transaction.expect_branch(target.branch)
        return replace_where(
            session,
            target,
            where,
            [],
            transaction,
            strings=strings,
            branch=target.branch,
            case_sensitive=case_sensitive,
        )


def replace_where(
    session: SparkSession,
    target: Target,
    where: BooleanExpression,
    files: list[DataFile],
    transaction: Transaction[Table],
    *,
    strings: Mapping[str, str] | None = None,
    branch: str | None = MAIN_BRANCH,
    case_sensitive: bool = True,
) -> WriteResult:
    """Stage files in place of the rows that match a filter. Files with only matching rows are dropped without a job."""
    whole, some = transaction.matching_files(where, branch, case_sensitive)
    if not (whole or some or files):
        return WriteResult()
    if not some:
        return transaction.overwrite_files(
            files,
            where,
            _summary(session, target, strings),
            case_sensitive=case_sensitive,
            branch=branch,
            isolation_level=target.isolation_level,
        )
    scan = target.scan(where, case_sensitive=case_sensitive)
    gone = found_by_filter(session, scan, target.plan, set(some))
    return apply_changes(
        session, target, files, gone, transaction, branch=branch, whole=whole, concern=where, strings=strings
    )


def _summary(session: SparkSession, target: Target, strings: Mapping[str, str] | None) -> dict[str, str]:
    """The properties of the snapshot of a change: the engine and the application, and what the caller gives."""
    application = session.conf.get(APPLICATION, "") or ""
    return {**ENGINE, **({APPLICATION: application} if application else {}), **target.strings, **(strings or {})}


def _mark(
    delta: Any,
    target: Target,
    files: list[DataFile],
    dropped: Collection[str],
    marked: Mapping[str, Positions],
    concern: BooleanExpression,
    transaction: Any,
) -> None:
    """Add rows, and mark other rows as deleted."""
    table = target.table
    known = {path: target.plan.task(path) for path in marked}
    delta.add_fresh_rows(files).validate_from_snapshot(target.snapshot_id)
    delta.remove_rows(*dropped)
    context = DeleteContext.from_metadata(table.metadata, table.io)
    note = transaction.context.written.add
    if table.format_version >= 3:
        old = _old_positions(target, marked)
        rows = [
            DeletedRows(known[path].file, distinct(found, old[path]) if path in old else found)
            for path, found in marked.items()
        ]
        delta.add_deletes(*write_deletion_vectors(context, rows, note=note))
        for path in marked:
            replaced = [each for each in known[path].delete_files if each.referenced_data_file == path]
            delta.remove_deletes(*replaced)
    else:
        rows = [DeletedRows(known[path].file, found) for path, found in marked.items()]
        delta.add_deletes(*write_position_deletes(context, rows, note=note))
    delta.conflict_detection_filter(concern).validate_data_files_exist(marked)
    if target.kind != "delete":
        delta.validate_deleted_files().validate_no_conflicting_delete_files()
    if target.is_serializable:
        delta.validate_no_conflicting_data_files()
    delta.commit()


def _old_positions(target: Target, marked: Mapping[str, Any]) -> dict[str, Positions]:
    """The positions that are deleted already in data files that get a new deletion vector."""
    paths = [path for path in marked if target.plan.task(path).delete_files]
    if not paths or target.snapshot_id is None:
        return {}
    columns = ("file_path", "pos")
    found = target.table.inspect.scan(
        "position_deletes", target.snapshot_id, row_filter=In("file_path", paths), selected_fields=columns
    ).to_arrow()
    return {
        path: np.asarray(found.filter(pc.equal(found.column("file_path"), path)).column("pos").combine_chunks())
        for path in paths
    }

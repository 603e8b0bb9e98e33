"""Erasing rows: from every branch, every earlier version and every file, as a law on personal data may demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from icefield import Table
from icefield.errors import InvalidArgument, ValidationFailed
from icefield.expressions import BooleanExpression, bind
from icefield.metadata import RefType
from icefield.scan import FileScanTask, read_tasks
from icefield.toolkit import html_of, short_repr

if TYPE_CHECKING:
    from icefield_maintenance.maintenance_table import MaintenanceTable


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EraseResult:
    """The result of an erasure: no file of the table holds a matching row any more.

    ``rows_deleted`` were live in a branch, and count once a branch. ``files_deleted`` are files of every kind, and
    ``files_examined`` the data files that were read at the end to prove the erasure.
    """

    rows_deleted: int = 0
    tags_removed: tuple[str, ...] = ()
    snapshots_expired: int = 0
    files_deleted: int = 0
    files_examined: int = 0

    __repr__ = short_repr
    _repr_html_ = html_of


def erase(
    table: Table, maintenance: MaintenanceTable, row_filter: BooleanExpression, *, remove_tags: bool
) -> EraseResult:
    """Erase rows; see ``MaintenanceTable.erase``."""
    table.refresh()
    bind(table.schema(), row_filter)
    tags = tuple(name for name in _refs(table, RefType.TAG) if _held(table, name, row_filter)[0])
    if tags and not remove_tags:
        raise InvalidArgument(
            f"tag '{tags[0]}' keeps a version with rows to erase: remove it first, or pass remove_tags=True, which "
            f"removes {', '.join(tags)}"
        )
    if tags:
        change = table.manage_snapshots()
        for name in tags:
            change.remove_tag(name)
        change.commit()
    deleted = sum(_erased_from_branch(table, maintenance, name, row_filter) for name in _refs(table, RefType.BRANCH))
    table.refresh()
    heads = {ref.snapshot_id for ref in table.refs().values()}
    old = [each.snapshot_id for each in table.snapshots() if each.snapshot_id not in heads]
    expired = maintenance.expire_snapshots(snapshot_ids=old) if old else None
    files = 0
    if expired is not None:
        _check_deleted(table, expired.kept_files, expired.undeleted, expired.kept_folders)
        files = expired.data_files + expired.position_delete_files + expired.equality_delete_files
        files += expired.deletion_vector_files + expired.manifests + expired.manifest_lists + expired.statistics_files
    table.refresh()
    examined = 0
    for name in table.refs():
        held, read = _held(table, name, row_filter)
        examined += read
        if held:
            raise ValidationFailed(
                f"'{name}' of table {'.'.join(table.name())} has {held:,} rows to erase again, which others wrote "
                "meanwhile: erase them once more"
            )
    return EraseResult(
        rows_deleted=deleted,
        tags_removed=tags,
        snapshots_expired=len(old),
        files_deleted=files,
        files_examined=examined,
    )


def _refs(table: Table, kind: RefType) -> list[str]:
    return [name for name, ref in table.refs().items() if ref.type is kind]


def _erased_from_branch(table: Table, maintenance: MaintenanceTable, branch: str, row_filter: BooleanExpression) -> int:
    """Delete the rows of a branch, and write the files anew that still hold them; return the number of rows."""
    deleted = table.delete(row_filter, branch=branch).rows_deleted or 0
    if any(task.delete_files for task in table.scan(ref=branch).plan_files()):
        # The files of equality deletes hold values of deleted rows.
        maintenance.convert_equality_deletes(branch=branch)
        table.refresh()
    if _held(table, branch, row_filter)[0]:
        maintenance.rewrite_data_files(where=row_filter, rewrite_all=True, branch=branch)
    maintenance.remove_dangling_deletes(branch=branch)
    # Entries of removed files keep their bounds, which are values of rows.
    maintenance.rewrite_manifests(predicate=lambda manifest: manifest.has_deleted_files, branch=branch)
    table.refresh()
    return deleted


def _held(table: Table, ref: str, row_filter: BooleanExpression) -> tuple[int, int]:
    """How many matching rows the data files of a version hold, deleted or not; and how many files were read for it.

    The filter refers to the table's columns by their present names, whatever they were called in the version.
    """
    context = table.scan(row_filter).context
    bound = bind(context.schema, row_filter)
    bare = [FileScanTask(task.file, bound) for task in table.scan(ref=ref).plan_files()]
    return sum(batch.num_rows for batch in read_tasks(bare, context)), len(bare)


def _check_deleted(table: Table, kept: int, undeleted: int, folders: tuple[str, ...]) -> None:
    if undeleted:
        raise ValidationFailed(
            f"the rows are erased from every version of table {'.'.join(table.name())}, but the store did not delete "
            f"{undeleted:,} files of earlier ones, which the log names: expire again"
        )
    if kept:
        raise ValidationFailed(
            f"the rows are erased from every version of table {'.'.join(table.name())}, but {kept:,} files of earlier "
            f"ones are outside of its folders and were kept, in {', '.join(folders)}: delete them if no other table "
            "needs them"
        )

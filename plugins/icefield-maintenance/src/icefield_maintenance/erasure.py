"""Erasing rows: from every branch and every earlier version of a table, as a law on personal data may demand.

Errors with an attribute ``summary`` have a text without any value of the filter or of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icefield import Table
from icefield.errors import InvalidArgument, ValidationFailed
from icefield.expressions import BooleanExpression, bind
from icefield.manifest import DataFileContent
from icefield.metadata import DELETE_MODE, RefType
from icefield.scan import FileScanTask, read_tasks
from icefield.toolkit import html_of, short_repr

from icefield_maintenance.expiry import ExpireSnapshotsResult, Retention, expire

if TYPE_CHECKING:
    from icefield.transaction import TableAccess

    from icefield_maintenance.maintenance_table import MaintenanceTable

_ROUNDS: Final = 3
"""The number of times that an erasure begins again because others changed the table meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EraseResult:
    """The result of an erasure: no data file of a version of the table holds a matching row any more.

    ``rows_deleted`` were live in a branch, and count once a branch. ``files_deleted`` are files of every kind, and
    ``files_examined`` the data files that were read at the end to prove the erasure.
    """

    rows_deleted: int = 0
    tags_removed: tuple[str, ...] = ()
    snapshots_expired: int = 0
    files_deleted: int = 0
    files_examined: int = 0

    _repr_html_ = html_of
    __repr__ = short_repr


def erase(
    table: Table,
    maintenance: MaintenanceTable,
    target: TableAccess,
    row_filter: BooleanExpression,
    *,
    remove_tags: bool,
    always: bool,
) -> EraseResult:
    """Erase rows; see ``MaintenanceTable.erase``."""
    table.refresh()
    bind(table.schema(), row_filter)
    _refuse_staged(table)
    # The files of an expiry that was interrupted are deleted now; no snapshot expires.
    asked = Retention.asked(0, 0, None, ())
    try:
        files = _deleted(table, expire(target, asked, dry_run=False, clean_files=True))
    except InvalidArgument as error:
        raise InvalidArgument(str(error), summary=str(error)) from error
    examined = _Examined(table, row_filter)
    if not always and not any(examined.rows(each.snapshot_id) for each in reversed(table.snapshots())):
        return EraseResult(files_deleted=files, files_examined=examined.files)
    tags = _tags_to_remove(table, examined, remove_tags)
    rows = expired = 0
    for _ in range(_ROUNDS):
        for name in _refs(table, RefType.BRANCH):
            rows += _erased_from_branch(table, maintenance, examined, name, row_filter)
        if old := _old(table):
            files += _deleted(table, maintenance.expire_snapshots(snapshot_ids=old))
            expired += len(old)
        table.refresh()
        proof = _Examined(table, row_filter)
        if not any(proof.rows(ref.snapshot_id) for ref in table.refs().values()) and not _old(table):
            return EraseResult(
                rows_deleted=rows,
                tags_removed=tags,
                snapshots_expired=expired,
                files_deleted=files,
                files_examined=proof.files,
            )
    message = f"others changed table {'.'.join(table.name())} whenever its rows were erased: erase them once more"
    raise ValidationFailed(message, summary=message)


class _Examined:
    """Counts the matching rows in data files, deleted or not; each file is read once.

    The filter refers to the table's columns by their present names, whatever they were called in a version.
    """

    def __init__(self, table: Table, row_filter: BooleanExpression) -> None:
        self._table = table
        self._context = table.scan(row_filter).context
        self._filter = bind(self._context.schema, row_filter)
        self._rows: dict[str, int] = {}

    @property
    def files(self) -> int:
        """The number of files that were read."""
        return len(self._rows)

    def rows(self, snapshot_id: int) -> int:
        """The matching rows in the data files of a snapshot."""
        files = {task.file.file_path: task.file for task in self._table.scan(snapshot_id=snapshot_id).plan_files()}
        for path in files.keys() - self._rows.keys():
            bare = [FileScanTask(files[path], self._filter)]
            self._rows[path] = sum(batch.num_rows for batch in read_tasks(bare, self._context))
        return sum(self._rows[path] for path in files)


def _refs(table: Table, kind: RefType) -> list[str]:
    return [name for name, ref in table.refs().items() if ref.type is kind]


def _old(table: Table) -> list[int]:
    """The snapshots that are no head of a branch, and that no tag names."""
    heads = {ref.snapshot_id for ref in table.refs().values()}
    return [each.snapshot_id for each in table.snapshots() if each.snapshot_id not in heads]


def _refuse_staged(table: Table) -> None:
    """Refuse a table with writes that wait for their publication: their snapshots would expire."""
    refs = table.refs().values()
    known = {snapshot_id for ref in refs for snapshot_id in table.metadata.ancestor_ids(ref.snapshot_id)}
    published = {each.summary.get("published-wap-id") for each in table.snapshots()}
    for each in table.snapshots():
        staged = each.summary.get("wap.id")
        if staged is not None and each.snapshot_id not in known and staged not in published:
            message = (
                f"snapshot {each.snapshot_id} is a staged write (wap.id={staged}) and would be lost: publish it, or "
                "expire it by its id, and erase then"
            )
            raise InvalidArgument(message, snapshot_id=each.snapshot_id, summary=message)


def _tags_to_remove(table: Table, examined: _Examined, remove_tags: bool) -> tuple[str, ...]:
    """Remove the tags that keep such rows, and return their names. Raises ``InvalidArgument`` if none may go."""
    tags = tuple(name for name in _refs(table, RefType.TAG) if _keeps(table, examined, name))
    if tags and not remove_tags:
        message = (
            f"tag '{tags[0]}' keeps a version with rows to erase, or with equality deletes or entries of removed files "
            f"that may hold their values: remove it first, or pass remove_tags=True, which removes {', '.join(tags)}"
        )
        raise InvalidArgument(message, summary=message)
    if tags:
        change = table.manage_snapshots()
        for name in tags:
            change.remove_tag(name)
        change.commit()
    return tags


def _keeps(table: Table, examined: _Examined, tag: str) -> bool:
    """Whether files of a tag's version hold matching rows, or may hold their values in another form."""
    snapshot_id = table.refs()[tag].snapshot_id
    manifests = table.inspect.manifests(snapshot_id)
    names = ("deleted_data_files_count", "deleted_delete_files_count")
    if any(count != 0 for name in names for count in manifests[name].to_pylist()):
        return True
    deletes = table.inspect.delete_files(snapshot_id)["content"].to_pylist()
    return DataFileContent.EQUALITY_DELETES in deletes or examined.rows(snapshot_id) > 0


def _erased_from_branch(
    table: Table, maintenance: MaintenanceTable, examined: _Examined, branch: str, row_filter: BooleanExpression
) -> int:
    """Delete the rows of a branch, and write the files anew that still hold them; return the number of rows."""
    deleted = _deleted_rows(table, branch, row_filter)
    if any(task.delete_files for task in table.scan(ref=branch).plan_files()):
        # The files of equality deletes hold values of deleted rows.
        maintenance.convert_equality_deletes(branch=branch)
        table.refresh()
    head = table.snapshot_by_name(branch)
    if head is not None and examined.rows(head.snapshot_id):
        maintenance.rewrite_data_files(where=row_filter, rewrite_all=True, branch=branch)
    maintenance.remove_dangling_deletes(branch=branch)
    # Entries of removed files keep their bounds, which are values of rows.
    maintenance.rewrite_manifests(predicate=lambda manifest: manifest.has_deleted_files, branch=branch)
    table.refresh()
    return deleted


def _deleted_rows(table: Table, branch: str, row_filter: BooleanExpression) -> int:
    """Delete the rows of a branch, and return their number."""
    # A table of version 1 refuses deletes in files of their own, which the property may ask for all the same.
    rewrites = DELETE_MODE.default
    mode = table.properties.get(DELETE_MODE.name, rewrites) if table.format_version == 1 else rewrites
    with table.transaction() as change:
        if mode != rewrites:
            change.set_properties({DELETE_MODE.name: rewrites})
        made = change.delete(row_filter, branch=branch)
        if mode != rewrites:
            change.set_properties({DELETE_MODE.name: mode})
    return made.rows_deleted or 0


def _deleted(table: Table, expired: ExpireSnapshotsResult) -> int:
    """The number of files that an expiry deleted. Raises ``ValidationFailed`` if it had to leave some."""
    story = f"earlier versions of table {'.'.join(table.name())} have expired, but"
    if expired.undeleted:
        message = (
            f"{story} the store did not delete {expired.undeleted:,} of their files, which the log names: erase again"
        )
        raise ValidationFailed(message, summary=message)
    if expired.kept_files:
        kept = f"{story} {expired.kept_files:,} of their files are outside of its folders and were kept"
        # Names of folders may be values of rows.
        raise ValidationFailed(
            f"{kept}, in {', '.join(expired.kept_folders)}: delete them if no other table needs them", summary=kept
        )
    return expired.files

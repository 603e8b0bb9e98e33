"""Undoing changes of a table, going back to a version, and comparing two versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from numbers import Integral
from types import MethodType
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from icefield import Table
from icefield.errors import InvalidArgument, NoSuchSnapshot, ValidationFailed
from icefield.metadata import MAIN_BRANCH, AssertRefSnapshotID, Snapshot, TableMetadata, Timestamp
from icefield.transaction import Action, ActionContext, Changes, ManageSnapshots

Version: TypeAlias = int | str | datetime
"""A snapshot id, the name of a branch or tag, or a time (a ``datetime`` or a string in ISO form)."""

_TYPE: Final = "_change_type"
_REVERSED: Final = {
    "INSERT": "DELETE",
    "DELETE": "INSERT",
    "UPDATE_BEFORE": "UPDATE_AFTER",
    "UPDATE_AFTER": "UPDATE_BEFORE",
}


class UndoSnapshot(ManageSnapshots):
    """Moves a branch from a snapshot to its parent. Fails when the branch has moved on meanwhile."""

    def __init__(self, stage: Callable[[Action], None], branch: str, head: Snapshot, parent_id: int) -> None:
        super().__init__(stage)
        self._branch, self._head = branch, head
        self.replace_branch(branch, parent_id)

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The move of the branch. Raises ``ValidationFailed`` if another commit came after the snapshot."""
        found = base.head(self._branch)
        if found != self._head.snapshot_id:
            raise ValidationFailed(
                f"cannot undo snapshot {self._head.snapshot_id}: the head of '{self._branch}' is {found} by now, which "
                "another commit has made; refresh the table and look at its history first",
                snapshot_id=self._head.snapshot_id,
            )
        changes = super().apply(base, context)
        return replace(changes, requirements=(*changes.requirements, AssertRefSnapshotID(self._branch, found)))


def undo(self: Table, branch: str = MAIN_BRANCH) -> Snapshot:
    """Take the newest change of a branch back, and return the snapshot that was undone.

    The branch returns to the parent of its head, as this table object knows it. The snapshot stays until it expires, so
    that ``rollback`` or ``manage_snapshots().set_current_snapshot`` bring it back. Raises ``ValidationFailed`` if
    another commit came after it, ``NoSuchSnapshot`` for a table or branch without a snapshot, and for a first snapshot
    or one whose parent has expired.
    """
    head = self.snapshot_by_name(branch)
    if head is None:
        raise NoSuchSnapshot(f"branch '{branch}' of table {'.'.join(self.name())} has no snapshot to undo", ref=branch)
    parent = None if head.parent_snapshot_id is None else self.snapshot_by_id(head.parent_snapshot_id)
    if parent is None:
        why = (
            "is the first one; delete() removes its rows"
            if head.parent_snapshot_id is None
            else "has no parent any more"
        )
        raise NoSuchSnapshot(f"cannot undo snapshot {head.snapshot_id}: it {why}", snapshot_id=head.snapshot_id)
    UndoSnapshot(self.stage, branch, head, parent.snapshot_id).commit()
    return head


def rollback(self: Table, to: int | str | None = None, *, as_of: Timestamp | None = None) -> Snapshot:
    """Make an earlier version of ``main`` current again, and return its snapshot.

    ``to`` is the id of an ancestor, or a branch or tag whose head is one; ``as_of`` is a time, and the latest ancestor
    that is older becomes current. Later snapshots stay until they expire. Raises ``NoSuchSnapshot``, and
    ``InvalidArgument`` for a snapshot that is no ancestor.
    """
    if (to is None) == (as_of is None):
        raise InvalidArgument("a rollback goes to a snapshot, branch or tag, or back to a time (as_of)")
    change = self.manage_snapshots()
    if as_of is not None:
        change.rollback_to_timestamp(as_of).commit()
    else:
        assert to is not None
        change.rollback_to_snapshot(_snapshot(self, to).snapshot_id).commit()
    current = self.current_snapshot()
    assert current is not None, "the table was rolled back to a snapshot"
    return current


def diff(self: Table, a: Version, b: Version = MAIN_BRANCH, key: Sequence[str] | str | None = None) -> pa.Table:
    """The rows that differ between two versions, as changes that lead from ``a`` to ``b``.

    The table has the columns of the schema and ``_change_type``: INSERT, DELETE, UPDATE_BEFORE or UPDATE_AFTER. A row
    with the same ``key`` columns in both versions is an update; the schema's identifier fields are the key by default,
    and without them each row is deleted or inserted. Only files that changed are read. Raises ``NoSuchSnapshot``, and
    ``InvalidArgument`` if neither version is an ancestor of the other.
    """
    one, other = _snapshot(self, a), _snapshot(self, b)
    metadata = self.metadata
    if one.snapshot_id in metadata.ancestor_ids(other.snapshot_id):
        return _changes(self, one, other, key)
    if other.snapshot_id not in metadata.ancestor_ids(one.snapshot_id):
        seen = set(metadata.ancestor_ids(one.snapshot_id))
        common = next((each for each in metadata.ancestor_ids(other.snapshot_id) if each in seen), None)
        raise InvalidArgument(
            f"neither of the snapshots {one.snapshot_id} and {other.snapshot_id} is an ancestor of the other"
            + ("" if common is None else f"; compare each of them with {common}, on which both are built"),
            snapshot_id=one.snapshot_id,
        )
    found = _changes(self, other, one, key)
    found = found.take(pa.array(range(found.num_rows - 1, -1, -1), pa.int64()))
    place = found.schema.get_field_index(_TYPE)
    named = pc.index_in(found[_TYPE], pa.array([*_REVERSED]))
    kinds = pa.chunked_array([pa.array([*_REVERSED.values()])]).take(named)
    return found.set_column(place, found.schema.field(place), kinds.cast(found.schema.field(place).type))


def undoing(table: Table) -> MethodType:
    """``undo`` of a table."""
    return MethodType(undo, table)


def rolling_back(table: Table) -> MethodType:
    """``rollback`` of a table."""
    return MethodType(rollback, table)


def comparing(table: Table) -> MethodType:
    """``diff`` of a table."""
    return MethodType(diff, table)


def _changes(table: Table, start: Snapshot, end: Snapshot, key: Sequence[str] | str | None) -> pa.Table:
    keys: Any = (key,) if isinstance(key, str) else tuple(key or ())
    scan = table.incremental_changelog_scan(
        selected_fields=("*", _TYPE),
        from_snapshot_id_exclusive=start.snapshot_id,
        to_snapshot_id_inclusive=end.snapshot_id,
        net_changes=True,
        compute_updates=bool(keys or table.schema().identifier_field_ids),
        identifier_columns=keys,
    )
    return scan.to_arrow()


def _snapshot(table: Table, version: Version) -> Snapshot:
    if isinstance(version, str) and version in table.refs():
        found = table.snapshot_by_name(version)
    elif isinstance(version, Integral):  # also those of numpy
        found = table.snapshot_by_id(version)
    else:
        try:
            found = table.snapshot_as_of_timestamp(version)
        except InvalidArgument:
            found = None
    if found is None:
        raise NoSuchSnapshot(f"table {'.'.join(table.name())} has no snapshot, branch or tag {version!r}")
    return found

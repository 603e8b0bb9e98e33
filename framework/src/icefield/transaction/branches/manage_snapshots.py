"""Branches, tags and the current snapshot; publication of staged snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import msgspec

from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.metadata import MAIN_BRANCH, RefType, SnapshotRef, TableMetadata, TableRequirement, apply_updates
from icefield.metadata.remembered import branches_moved
from icefield.metadata.snapshots import NO_SNAPSHOT
from icefield.metadata.timestamps import Timestamp, as_milliseconds, in_utc
from icefield.metadata.updates.base import TableUpdate
from icefield.metadata.updates.snapshots import RemoveSnapshotRef, SetSnapshotRef
from icefield.transaction.action import Action, ActionContext, Changes
from icefield.transaction.branches.cherry_pick import CherryPick, PublishChanges
from icefield.transaction.head.branch_head import Head
from icefield.transaction.snapshots.snapshot_producer import FileChanges, SnapshotProducer

Refs = dict[str, SnapshotRef]
Step = Callable[[TableMetadata, Refs], None]


class ManageSnapshots(Action):
    """Create, move and remove branches and tags; roll back. The steps are applied in order, and again on a retry.

    Rolling back, and moving a branch, leaves every snapshot in the table until it expires.
    """

    shapes = False

    def __init__(self, stage: Callable[[Action], None]) -> None:
        super().__init__(stage)
        self._steps: list[Step | Action] = []

    # -- branches and tags ----------------------------------------------------------------------------------------

    def create_branch(
        self,
        snapshot_id: int | None,
        branch_name: str,
        max_ref_age_ms: int | None = None,
        max_snapshot_age_ms: int | None = None,
        min_snapshots_to_keep: int | None = None,
    ) -> Self:
        """Create a branch at a snapshot; ages in ms. Raises ``InvalidArgument`` on commit when the name is taken.

        None is the snapshot that is current at the commit; in a table that has none yet, the branch begins with an
        empty one.
        """
        number = NO_SNAPSHOT if snapshot_id is None else snapshot_id
        ref = SnapshotRef(number, RefType.BRANCH, min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms)
        if snapshot_id is not None:
            return self._create(branch_name, ref)
        _checked_name(branch_name)
        self._step(lambda metadata, refs: _refuse_taken(refs, branch_name))
        return self._action(CreateBranch(self._steps.append, branch_name, ref))

    def create_tag(self, snapshot_id: int, tag_name: str, max_ref_age_ms: int | None = None) -> Self:
        """Create a tag on a snapshot. Raises ``InvalidArgument`` on commit when the name is taken."""
        return self._create(tag_name, SnapshotRef(snapshot_id, RefType.TAG, max_ref_age_ms=max_ref_age_ms))

    def remove_branch(self, branch_name: str) -> Self:
        """Remove a branch; its snapshots stay until they expire. Raises ``NoSuchSnapshot`` when it is not there."""
        return self._remove(branch_name, RefType.BRANCH)

    def remove_tag(self, tag_name: str) -> Self:
        """Remove a tag. Raises ``NoSuchSnapshot`` when it is not there."""
        return self._remove(tag_name, RefType.TAG)

    def rename_branch(self, branch_name: str, new_name: str) -> Self:
        """Rename a branch. ``main`` keeps its name."""
        _checked_name(new_name)

        def step(metadata: TableMetadata, refs: Refs) -> None:
            if branch_name == MAIN_BRANCH:
                raise InvalidArgument("the branch 'main' cannot be renamed")
            _refuse_taken(refs, new_name)
            refs[new_name] = _existing(refs, branch_name, RefType.BRANCH)
            del refs[branch_name]

        return self._step(step)

    def replace_branch(self, branch_name: str, snapshot_id: int) -> Self:
        """Point a branch to another snapshot, related or not."""
        return self._change(branch_name, RefType.BRANCH, snapshot_id=snapshot_id)

    def replace_tag(self, tag_name: str, snapshot_id: int) -> Self:
        """Point a tag to another snapshot."""
        return self._change(tag_name, RefType.TAG, snapshot_id=snapshot_id)

    def fast_forward(self, branch_name: str, to: str) -> Self:
        """Move a branch forward to the snapshot of another branch or tag; create the branch if it is missing.

        Raises ``InvalidArgument`` on commit when that snapshot is not ahead of the branch.
        """

        def step(metadata: TableMetadata, refs: Refs) -> None:
            target = _existing(refs, to)
            current = refs.get(branch_name)
            if current is None:
                refs[_checked_name(branch_name)] = SnapshotRef(target.snapshot_id, RefType.BRANCH)
                return
            _existing(refs, branch_name, RefType.BRANCH)
            if current.snapshot_id not in metadata.ancestor_ids(target.snapshot_id):
                raise InvalidArgument(
                    f"branch '{branch_name}' cannot be moved forward to '{to}': its snapshot {current.snapshot_id} "
                    f"is no ancestor of {target.snapshot_id}; replace_branch moves it anyway",
                    ref=branch_name,
                )
            refs[branch_name] = msgspec.structs.replace(current, snapshot_id=target.snapshot_id)

        return self._step(step)

    def set_min_snapshots_to_keep(self, branch_name: str, count: int) -> Self:
        """Set the number of snapshots of a branch that expiry keeps at any age."""
        return self._change(branch_name, RefType.BRANCH, min_snapshots_to_keep=count)

    def set_max_snapshot_age_ms(self, branch_name: str, age_ms: int) -> Self:
        """Set the age, in ms, up to which expiry keeps the snapshots of a branch."""
        return self._change(branch_name, RefType.BRANCH, max_snapshot_age_ms=age_ms)

    def set_max_ref_age_ms(self, name: str, age_ms: int) -> Self:
        """Set the age, in ms, up to which expiry keeps a branch or a tag."""
        return self._change(name, None, max_ref_age_ms=age_ms)

    # -- the current snapshot -------------------------------------------------------------------------------------

    def set_current_snapshot(self, snapshot_id: int | None = None, ref_name: str | None = None) -> Self:
        """Make any snapshot of the table the current one, by id or by the branch or tag that names it."""
        if (snapshot_id is None) == (ref_name is None):
            raise InvalidArgument("give either snapshot_id or ref_name")

        def step(metadata: TableMetadata, refs: Refs) -> None:
            target = snapshot_id if ref_name is None else _existing(refs, ref_name).snapshot_id
            assert target is not None
            _set_main(metadata, refs, target)

        return self._step(step)

    def rollback_to_snapshot(self, snapshot_id: int) -> Self:
        """Make an ancestor of the current snapshot current. Raises ``InvalidArgument`` on commit for another one."""

        def step(metadata: TableMetadata, refs: Refs) -> None:
            _known(metadata, snapshot_id)
            main = refs.get(MAIN_BRANCH)
            if main is None or snapshot_id not in metadata.ancestor_ids(main.snapshot_id):
                raise InvalidArgument(
                    f"cannot roll back to snapshot {snapshot_id}: it is no ancestor of the current one; "
                    "set_current_snapshot makes it current anyway",
                    snapshot_id=snapshot_id,
                )
            _set_main(metadata, refs, snapshot_id)

        return self._step(step)

    def rollback_to_timestamp(self, timestamp_ms: Timestamp) -> Self:
        """Make the latest ancestor current that is older than a time.

        ``timestamp_ms``: ms since 1970 UTC, a ``datetime``, or a string in ISO form; ``InvalidArgument`` for anything
        else. Raises ``NoSuchSnapshot`` on commit if no remaining ancestor is older.
        """
        limit = as_milliseconds(timestamp_ms)

        def step(metadata: TableMetadata, refs: Refs) -> None:
            main = refs.get(MAIN_BRANCH)
            for snapshot in metadata.ancestors(main.snapshot_id if main is not None else None):
                if snapshot.timestamp_ms < limit:
                    return _set_main(metadata, refs, snapshot.snapshot_id)
            raise NoSuchSnapshot(
                f"no ancestor of the current snapshot is older than {in_utc(limit)}", timestamp_ms=limit
            )

        return self._step(step)

    # -- staged snapshots -----------------------------------------------------------------------------------------

    def cherry_pick(self, snapshot_id: int) -> Self:
        """Publish a staged snapshot, or take over the change of a snapshot of another branch, on top of ``main``.

        If its parent is the current snapshot it becomes current itself; else its files go into a new snapshot.
        Raises on commit: ``InvalidArgument`` for a snapshot that was published before, or that is no append and depends
        on the rows that it met; ``ValidationFailed`` for replaced partitions that changed; ``NoSuchSnapshot``.
        """
        return self._action(CherryPick(self._steps.append, snapshot_id))

    def publish_changes(self, wap_id: str) -> Self:
        """``cherry_pick`` of the snapshot that was staged under this ``wap.id``."""
        return self._action(PublishChanges(self._steps.append, wap_id))

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """Apply the steps to the base's refs; the differences in the end are the change."""
        metadata = base
        updates: list[TableUpdate] = []
        requirements: list[TableRequirement] = []
        refs: Refs = dict(base.refs)
        for step in self._steps:
            if not isinstance(step, Action):
                step(metadata, refs)
                continue
            updates += _changed(metadata, refs)
            changes = step.apply(apply_updates(base, updates), context)
            updates += changes.updates
            requirements += changes.requirements
            metadata = apply_updates(base, updates)
            refs = dict(metadata.refs)
        updates += _changed(metadata, refs)
        return Changes(tuple(updates), tuple(requirements))

    def _is_filled(self) -> bool:
        return bool(self._steps)

    def _step(self, step: Step) -> Self:
        self._steps.append(step)
        return self

    def _action(self, action: Action) -> Self:
        action.commit()  # its stage is the list of steps
        return self

    def _create(self, name: str, ref: SnapshotRef) -> Self:
        _checked_name(name)

        def step(metadata: TableMetadata, refs: Refs) -> None:
            _refuse_taken(refs, name)
            refs[name] = msgspec.structs.replace(ref, snapshot_id=_known(metadata, ref.snapshot_id))

        return self._step(step)

    def _remove(self, name: str, kind: RefType) -> Self:
        def step(metadata: TableMetadata, refs: Refs) -> None:
            if name == MAIN_BRANCH:
                raise InvalidArgument("the branch 'main' cannot be removed: it is the table")
            _existing(refs, name, kind)
            del refs[name]

        return self._step(step)

    def _change(self, name: str, kind: RefType | None, **changes: int) -> Self:
        def step(metadata: TableMetadata, refs: Refs) -> None:
            ref = _existing(refs, name, kind)
            if "snapshot_id" in changes:
                changes["snapshot_id"] = _known(metadata, changes["snapshot_id"])
            refs[name] = msgspec.structs.replace(ref, **changes)

        return self._step(step)


def _changed(base: TableMetadata, after: Refs) -> list[TableUpdate]:
    before = base.refs
    updates: list[TableUpdate] = [RemoveSnapshotRef(name) for name in before if name not in after]
    updates += [SetSnapshotRef(name, ref) for name, ref in after.items() if before.get(name) != ref]
    moved: dict[str, int | None] = {name: None for name, ref in before.items() if ref.is_branch and name not in after}
    heads = {name: ref.snapshot_id for name, ref in after.items() if ref.is_branch}
    moved |= {name: head for name, head in heads.items() if base.head(name) != head}
    return [*updates, *branches_moved(base, moved)]


def _set_main(metadata: TableMetadata, refs: Refs, snapshot_id: int) -> None:
    known = _known(metadata, snapshot_id)
    main = refs.get(MAIN_BRANCH) or SnapshotRef(known, RefType.BRANCH)
    refs[MAIN_BRANCH] = msgspec.structs.replace(main, snapshot_id=known)


def _known(metadata: TableMetadata, snapshot_id: int) -> int:
    """The id as the table states it. An id from a data frame is a number of numpy."""
    found = metadata.snapshot_by_id(snapshot_id)
    if found is None:
        raise NoSuchSnapshot(f"the table has no snapshot {snapshot_id}", snapshot_id=snapshot_id)
    return found.snapshot_id


def _existing(refs: Refs, name: str, kind: RefType | None = None) -> SnapshotRef:
    ref = refs.get(name)
    if ref is None:
        raise NoSuchSnapshot(f"the table has no {kind or 'branch or tag'} '{name}'", ref=name)
    if kind is not None and ref.type is not kind:
        raise InvalidArgument(f"'{name}' is a {ref.type}, not a {kind}", ref=name)
    return ref


def _refuse_taken(refs: Refs, name: str) -> None:
    if name in refs:
        raise InvalidArgument(f"the table has a {refs[name].type} '{name}' already", ref=name)


def _checked_name(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidArgument(f"a branch or tag is named by a string, not {name!r}")
    return name


class CreateBranch(SnapshotProducer):
    """Create a branch at the current snapshot, or at a new empty one. ``options`` say how long the branch is kept."""

    _may_be_empty = True

    def __init__(self, stage: Callable[[Action], None], name: str, options: SnapshotRef) -> None:
        super().__init__(stage, branch=None)
        self._name = name
        self._options = options

    def _target(self, base: TableMetadata) -> str | None:
        """No branch: a new snapshot is added first, and then the branch is created at it."""
        return None

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """Create the branch at the current snapshot, or at a new snapshot if the table has none."""
        made = Changes()
        snapshot_id = base.current_snapshot_id
        if snapshot_id is None:
            made = super().apply(base, context)
            snapshot_id = self._snapshot_id
        ref = msgspec.structs.replace(self._options, snapshot_id=snapshot_id)
        memory = () if made.updates or snapshot_id is None else branches_moved(base, {self._name: snapshot_id})
        return Changes((*made.updates, SetSnapshotRef(self._name, ref), *memory), made.requirements)

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """No file."""
        return FileChanges()

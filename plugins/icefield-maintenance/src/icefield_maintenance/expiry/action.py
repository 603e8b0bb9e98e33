"""The change of metadata that expiry makes."""

from __future__ import annotations

from collections.abc import Callable, Collection

from icefield.engine import branches_moved, remembering_expired
from icefield.errors import NoSuchSnapshot
from icefield.metadata import (
    MAIN_BRANCH,
    AssertRefSnapshotID,
    RemoveEncryptionKey,
    RemoveSnapshotRef,
    RemoveSnapshots,
    TableMetadata,
    TableRequirement,
    TableUpdate,
)
from icefield.storage import FileIO
from icefield.transaction import Action, ActionContext, Changes

from icefield_maintenance.expiry.interrupted import left_behind
from icefield_maintenance.expiry.retention import Expired, Retention, expired


class ExpireSnapshots(Action):
    """Removes expired snapshots and refs, decided anew on each base: a concurrent branch or tag keeps its snapshots.

    The commit requires every branch and tag to be unmoved since the decision. Otherwise a service that merges commits
    by their requirements would drop refs that moved to an expired snapshot meanwhile, including ``main``.
    """

    shapes = False

    def __init__(self, stage: Callable[[Action], None], asked: Retention) -> None:
        super().__init__(stage)
        self._asked = asked
        self.base: TableMetadata | None = None
        """The base of the latest attempt."""
        self.expired = Expired()
        """The expired snapshots and refs of that base."""

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """Expire snapshots and refs of the base. Raises as ``expired`` does."""
        first = self.base is None
        self.base = base
        self.expired, changes = changes_of(base, self._asked, context.io if first else None)
        return changes


def changes_of(base: TableMetadata, asked: Retention, io: FileIO | None) -> tuple[Expired, Changes]:
    """The snapshots and refs of a base that expire, and their removal as a change. Raises as ``expired`` does.

    With an ``io``, raises ``NoSuchSnapshot`` for an id that is unknown to the base and to the versions just before it:
    an interrupted run may have expired the snapshots of these versions.
    """
    found = expired(base, asked)
    unknown = asked.snapshot_ids - base.snapshots.positions.keys()
    if unknown and io is not None:
        unknown -= {snapshot.snapshot_id for snapshot in left_behind(io, base, ()).snapshots}
        if unknown:
            raise NoSuchSnapshot(f"the table has no snapshot {min(unknown)}", snapshot_id=min(unknown))
    if not found:
        return found, Changes()
    updates: list[TableUpdate] = [RemoveSnapshotRef(name) for name in found.refs]
    updates += branches_moved(base, {name: None for name in found.refs if base.refs[name].is_branch})
    if found.snapshot_ids:
        kept = [name for name, ref in base.refs.items() if ref.is_branch and name not in found.refs]
        updates += remembering_expired(base, kept, found.snapshot_ids)
        updates.append(RemoveSnapshots(found.snapshot_ids))
        updates += [RemoveEncryptionKey(key_id) for key_id in _unused_keys(base, found.snapshot_ids)]
    requirements: list[TableRequirement] = [
        AssertRefSnapshotID(name, ref.snapshot_id) for name, ref in base.refs.items()
    ]
    if MAIN_BRANCH not in base.refs:
        requirements.append(AssertRefSnapshotID(MAIN_BRANCH, None))
    return found, Changes(tuple(updates), tuple(requirements))


def _unused_keys(base: TableMetadata, gone: Collection[int]) -> list[str]:
    """The ids of the encryption keys that neither snapshots nor statistics need once some snapshots are ``gone``.

    The last key-encryption key stays: a concurrent commit may use it.
    """
    keys = {key.key_id: key.encrypted_by_id for key in base.encryption_keys}
    files = {each.key_id for each in base.snapshots if each.snapshot_id not in gone}
    files |= {each.statistics_path for each in base.statistics_files if each.snapshot_id not in gone}
    encrypting = [key_id for key_id, by in keys.items() if by not in keys]
    used = files | {keys.get(key_id) for key_id in files if key_id is not None} | {*encrypting[-1:]}
    return [key_id for key_id in keys if key_id not in used]

"""The head of a branch, and whether one snapshot was built on another."""

from __future__ import annotations

from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.metadata import TableMetadata
from icefield.refs import MAIN_BRANCH
from icefield.snapshots import Snapshot


def head_of(metadata: TableMetadata, branch: str) -> Snapshot | None:
    """The snapshot that a commit to the branch builds on; None while the table has none.

    Raises ``NoSuchSnapshot`` for a branch that is not there, ``InvalidArgument`` for a tag.
    """
    ref = metadata.ref(branch)
    if ref is None:
        # The first commit of a table may name a branch: there is no snapshot yet to create it at.
        if branch == MAIN_BRANCH or not metadata.refs:
            return None
        raise NoSuchSnapshot(
            f"the table has no branch '{branch}'; manage_snapshots().create_branch makes one", branch=branch
        )
    if ref.is_tag:
        raise InvalidArgument(f"'{branch}' is a tag, which no commit can move; commit to a branch", ref=branch)
    return metadata.snapshot_by_id(ref.snapshot_id)


def is_ancestor(metadata: TableMetadata, ancestor_id: int, snapshot_id: int | None) -> bool:
    """Whether a snapshot is, or was built on, another."""
    return ancestor_id in metadata.ancestor_ids(snapshot_id)

"""The head of a branch, and whether one snapshot was built on another."""

from __future__ import annotations

from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.metadata import TableMetadata
from icefield.metadata.refs import MAIN_BRANCH
from icefield.metadata.snapshots import Snapshot
from icefield.metadata.spelling import was_meant


def checked_branch(branch: str | None) -> str | None:
    """The branch that a commit goes to, as the caller named it. Raises ``InvalidArgument`` for an invalid name."""
    if branch is not None and (not isinstance(branch, str) or not branch.strip()):
        raise InvalidArgument(
            f"a commit goes to a branch, which a non-empty string names, or with None is staged; not to {branch!r}"
        )
    return branch


def head_of(metadata: TableMetadata, branch: str | None) -> Snapshot | None:
    """The snapshot that a commit to the branch builds on, if any. A staged commit (None) builds on ``main``.

    Raises ``NoSuchSnapshot`` for a missing branch, ``InvalidArgument`` for a tag.
    """
    name = MAIN_BRANCH if branch is None else branch
    ref = metadata.ref(name)
    if ref is None:
        if name == MAIN_BRANCH:
            return None
        raise NoSuchSnapshot(
            f"the table has no branch '{name}'{was_meant(name, [MAIN_BRANCH, *metadata.refs]) or ';'} "
            f"manage_snapshots().create_branch(None, '{name}') makes one",
            branch=name,
        )
    if ref.is_tag:
        raise InvalidArgument(f"'{name}' is a tag, which no commit can move; commit to a branch", ref=name)
    return metadata.snapshot_by_id(ref.snapshot_id)


def is_ancestor(metadata: TableMetadata, ancestor_id: int, snapshot_id: int | None) -> bool:
    """Whether a snapshot equals another one or is an ancestor of it."""
    return ancestor_id in metadata.ancestor_ids(snapshot_id)

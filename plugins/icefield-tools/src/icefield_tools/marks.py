"""Marks in summaries of snapshots, by which a repeated load finds that it was committed."""

from __future__ import annotations

from collections.abc import Mapping

from icefield import Table


def is_marked(table: Table, marks: Mapping[str, str], branch: str = "main") -> bool:
    """Whether the head of a branch, or a snapshot before it, has all the marks."""
    snapshots = {each.snapshot_id: each for each in table.snapshots()}
    snapshot = table.snapshot_by_name(branch)
    while snapshot is not None:
        if all(snapshot.summary.get(name) == value for name, value in marks.items()):
            return True
        snapshot = snapshots.get(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id is not None else None
    return False

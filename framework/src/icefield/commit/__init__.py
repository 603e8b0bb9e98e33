"""Commits: the state of a table, and the retry loop for all changes."""

from icefield.commit.loop import (
    NO_LOOK,
    Build,
    commit_table,
    holds,
    snapshot_of,
    snapshots_of,
    tell_conflict,
    tell_made,
)
from icefield.commit.proposals import change_of, creation_of
from icefield.commit.retry_policy import RetryPolicy
from icefield.commit.settling import Change, Settled, settle
from icefield.commit.state import TableHandle, TableState, current_of, load_table
from icefield.commit.written_files import WrittenFiles, discard, discard_unexposed

__all__ = [
    "NO_LOOK",
    "Build",
    "Change",
    "RetryPolicy",
    "Settled",
    "TableHandle",
    "TableState",
    "WrittenFiles",
    "change_of",
    "commit_table",
    "creation_of",
    "current_of",
    "discard",
    "discard_unexposed",
    "holds",
    "load_table",
    "settle",
    "snapshot_of",
    "snapshots_of",
    "tell_conflict",
    "tell_made",
]

"""Commits: the state of a table, and the loop that every change goes through."""

from icefield.commit.loop import Build, Proposal, commit_table
from icefield.commit.retry_policy import RetryPolicy
from icefield.commit.state import TableHandle, TableState, load_table
from icefield.commit.written_files import WrittenFiles, discard, discard_unexposed

__all__ = [
    "Build",
    "Proposal",
    "RetryPolicy",
    "TableHandle",
    "TableState",
    "WrittenFiles",
    "commit_table",
    "discard",
    "discard_unexposed",
    "load_table",
]

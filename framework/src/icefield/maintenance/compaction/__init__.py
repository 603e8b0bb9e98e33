"""Data files rewritten into better ones: packed, sorted or clustered; the rows of the table stay the same."""

from icefield.maintenance.compaction.policy import RewriteDataPolicy
from icefield.maintenance.compaction.result import RewriteDataFilesResult, RewrittenGroup
from icefield.maintenance.compaction.rewrite import rewrite_data_files

__all__ = ["RewriteDataFilesResult", "RewriteDataPolicy", "RewrittenGroup", "rewrite_data_files"]

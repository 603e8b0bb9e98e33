"""Compaction: rewriting data files, packed, sorted or clustered. The rows of the table do not change."""

from icefield_maintenance.compaction.policy import RewriteDataPolicy
from icefield_maintenance.compaction.result import RewriteDataFilesResult, RewrittenGroup
from icefield_maintenance.compaction.rewrite import rewrite_data_files

__all__ = ["RewriteDataFilesResult", "RewriteDataPolicy", "RewrittenGroup", "rewrite_data_files"]

"""A copy of a table under other locations: rewriting its metadata, and listing the files to copy."""

from icefield_maintenance.paths.result import RewriteTablePathResult
from icefield_maintenance.paths.rewrite import rewrite_table_path

__all__ = ["RewriteTablePathResult", "rewrite_table_path"]

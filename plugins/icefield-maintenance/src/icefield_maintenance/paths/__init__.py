"""A copy of a table under other locations: its metadata written anew, and the list of files to copy."""

from icefield_maintenance.paths.result import RewriteTablePathResult
from icefield_maintenance.paths.rewrite import rewrite_table_path

__all__ = ["RewriteTablePathResult", "rewrite_table_path"]

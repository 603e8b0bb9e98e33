"""Rewriting, converting and removing delete files. The rows of the table do not change."""

from icefield_maintenance.deletes.convert import ConvertEqualityDeletes
from icefield_maintenance.deletes.dangling import RemoveDanglingDeletes
from icefield_maintenance.deletes.policy import RewritePolicy
from icefield_maintenance.deletes.results import (
    ConvertEqualityDeletesResult,
    RemoveDanglingDeletesResult,
    RewriteDeletesResult,
)
from icefield_maintenance.deletes.rewrite import RewritePositionDeletes

__all__ = [
    "ConvertEqualityDeletes",
    "ConvertEqualityDeletesResult",
    "RemoveDanglingDeletes",
    "RemoveDanglingDeletesResult",
    "RewriteDeletesResult",
    "RewritePolicy",
    "RewritePositionDeletes",
]

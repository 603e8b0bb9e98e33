"""Delete files rewritten, converted and removed; the rows of the table stay the same."""

from icefield.maintenance.deletes.convert import ConvertEqualityDeletes
from icefield.maintenance.deletes.dangling import RemoveDanglingDeletes
from icefield.maintenance.deletes.policy import RewritePolicy
from icefield.maintenance.deletes.results import (
    ConvertEqualityDeletesResult,
    RemoveDanglingDeletesResult,
    RewriteDeletesResult,
)
from icefield.maintenance.deletes.rewrite import RewritePositionDeletes

__all__ = [
    "ConvertEqualityDeletes",
    "ConvertEqualityDeletesResult",
    "RemoveDanglingDeletes",
    "RemoveDanglingDeletesResult",
    "RewriteDeletesResult",
    "RewritePolicy",
    "RewritePositionDeletes",
]

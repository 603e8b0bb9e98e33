"""Expiry: the snapshots to remove, and the files that only these snapshots refer to."""

from icefield_maintenance.expiry.expire import expire
from icefield_maintenance.expiry.result import ExpireSnapshotsResult
from icefield_maintenance.expiry.retention import Retention

__all__ = ["ExpireSnapshotsResult", "Retention", "expire"]

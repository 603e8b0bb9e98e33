"""Expiry: which snapshots go, and which files only they refer to."""

from icefield_maintenance.expiry.expire import expire
from icefield_maintenance.expiry.result import ExpireSnapshotsResult
from icefield_maintenance.expiry.retention import Retention

__all__ = ["ExpireSnapshotsResult", "Retention", "expire"]

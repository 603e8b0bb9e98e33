"""Expiry: which snapshots go, and which files only they refer to."""

from icefield.maintenance.expiry.expire import expire
from icefield.maintenance.expiry.result import ExpireSnapshotsResult
from icefield.maintenance.expiry.retention import Retention

__all__ = ["ExpireSnapshotsResult", "Retention", "expire"]

"""Orphan files: files below a table that belong to no version of it."""

from icefield_maintenance.orphans.result import RemoveOrphanFilesResult

__all__ = ["RemoveOrphanFilesResult"]

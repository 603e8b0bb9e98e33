"""Orphan files: what lies below a table and belongs to no version of it."""

from icefield_maintenance.orphans.result import RemoveOrphanFilesResult

__all__ = ["RemoveOrphanFilesResult"]

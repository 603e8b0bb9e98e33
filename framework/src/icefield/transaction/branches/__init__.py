"""Branches, tags and the current snapshot; publication of staged snapshots."""

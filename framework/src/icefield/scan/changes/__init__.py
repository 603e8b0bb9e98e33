"""Changelog scans: planning, reading and matching the row changes of snapshots."""

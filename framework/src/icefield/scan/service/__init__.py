"""Scans that a service plans."""

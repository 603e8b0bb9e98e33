"""Streams of changes: rows that were inserted, updated or deleted elsewhere, brought into a table as files."""

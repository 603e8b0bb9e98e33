"""Iceberg types as Arrow types, and operations on Arrow arrays of these types."""

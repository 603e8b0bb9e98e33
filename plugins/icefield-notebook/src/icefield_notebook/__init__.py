"""Catalogs, tables, scans and results as HTML in notebooks."""

"""A page about a table, or about the tables of a catalog: plots, and advice on maintenance."""

from icefield_report.reports import catalog_report, report, write_catalog_report, write_report

__all__ = ["catalog_report", "report", "write_catalog_report", "write_report"]

"""A page about a table, or about the tables of a catalog: plots, and advice on maintenance.

Names are imported when they are first used: the hooks of this plugin need no library of plots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import lazy_names

if TYPE_CHECKING:
    from icefield_report.hookspecs import ReportSection
    from icefield_report.reports import catalog_report, report, write_catalog_report, write_report
    from icefield_report.sections import SectionContext, html_table

__getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ReportSection",
    "SectionContext",
    "catalog_report",
    "html_table",
    "report",
    "write_catalog_report",
    "write_report",
]

"""A page about a table, or about the tables of a catalog: plots, and advice on maintenance.

Names are imported when they are first used: the hooks of this plugin need no library of plots.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icefield_report.hookspecs import ReportSection
    from icefield_report.reports import catalog_report, report, write_catalog_report, write_report
    from icefield_report.sections import SectionContext, html_table

_PUBLIC = {
    "ReportSection": "hookspecs",
    "SectionContext": "sections",
    "catalog_report": "reports",
    "html_table": "sections",
    "report": "reports",
    "write_catalog_report": "reports",
    "write_report": "reports",
}

__all__ = [
    "ReportSection",
    "SectionContext",
    "catalog_report",
    "html_table",
    "report",
    "write_catalog_report",
    "write_report",
]


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'icefield_report' has no attribute {name!r}")
    return getattr(import_module(f"icefield_report.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)

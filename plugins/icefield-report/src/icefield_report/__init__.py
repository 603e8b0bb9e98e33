"""A page about a table, or about the tables of a catalog: plots, and advice on maintenance.

Names are imported lazily: the hooks of this plugin need none of its libraries.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icefield_report.reports import catalog_report, report, write_catalog_report, write_report

_PUBLIC = {
    "catalog_report": "reports",
    "report": "reports",
    "write_catalog_report": "reports",
    "write_report": "reports",
}

__all__ = ["catalog_report", "report", "write_catalog_report", "write_report"]


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module '{__name__}' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)

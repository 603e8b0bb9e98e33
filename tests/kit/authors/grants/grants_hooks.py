"""The hooks of another author's plugin: an authorizer of the REST server, a report section, and a hook of its own."""

from __future__ import annotations

from icefield import Provider, hookimpl
from icefield_report import ReportSection


@hookimpl
def icefield_addhooks() -> list[str]:
    return ["authors.grants.grants_hookspecs"]


@hookimpl(optionalhook=True)
def icefield_authorizers() -> list[Provider]:
    return [Provider("grants", "authors.grants.grants_authorizer:authorizer")]


@hookimpl(optionalhook=True)
def icefield_report_sections() -> list[ReportSection]:
    return [ReportSection("grants", "Who may use it", "authors.grants.grants_section:section")]

"""The page about the health of a table: delete debt, manifests, advice, findings of the doctor, sections of plugins."""

from __future__ import annotations

import time
from typing import Any, Final

from icefield import Table
from icefield_maintenance.doctor import Finding, Result, examine_table
from icefield_report import SectionContext
from icefield_report.facts import Facts
from icefield_report.plots import plots_of
from icefield_report.sections import RenderedSection, sections_of
from icefield_rest_server import Answer, PageRequest

from icefield_explorer.visits import TableVisit

_PLOTS: Final = {"deletes", "manifests"}
_ELSEWHERE: Final = {"figures", "plots", "about"}
"""Sections of reports whose contents other pages have."""

_MOST: Final = 100
_SAMPLE: Final = 3
"""Data files that the doctor reads."""

_HELD: Final = 600
"""Seconds for which findings are shown again: files may go without a new version of the table."""

_MANIFESTS: Final = (
    "content",
    "path",
    "length",
    "added_data_files_count",
    "existing_data_files_count",
    "added_delete_files_count",
    "existing_delete_files_count",
)


def health(request: PageRequest) -> Answer:
    """The page about the health of a table. The doctor runs only on request: it looks for each file in the storage."""
    visit = TableVisit.of(request, "health", files=True)
    table = visit.table
    facts = visit.facts()
    plots = manifests = sections = None
    if facts is not None:
        plots = visit.result("health-plots", lambda: plots_of(facts, "health", _PLOTS))
        manifests = visit.result("manifests", lambda: _manifests(table))
        sections = visit.result("sections", lambda: _sections(table, facts))
    asked = visit.asked("doctor") == "run" and not request.is_foreign
    sample = _SAMPLE if request.access.gives_rows(table) else 0
    findings = None
    if asked:
        age = int(time.time() // _HELD)
        findings = visit.result("doctor", lambda: _findings(table, sample), sample, age)
    return visit.page(
        "health.html",
        facts=facts,
        plots=plots or [],
        manifests=manifests or [],
        sections=sections,
        asked=asked,
        findings=findings,
        sample=sample,
        most=_MOST,
    )


def _sections(table: Table, facts: Facts) -> tuple[RenderedSection, ...]:
    return sections_of(SectionContext(table, facts, "health", 2), without=_ELSEWHERE)


def _manifests(table: Table) -> list[dict[str, Any]]:
    """The manifests of the current snapshot, the largest first."""
    found = table.inspect.scan("manifests", selected_fields=_MANIFESTS).to_arrow()
    return found.sort_by([("length", "descending")]).slice(0, _MOST).to_pylist()  # type: ignore[no-any-return]


def _findings(table: Table, sample: int) -> dict[str, Any]:
    """Findings of the doctor that are not in order, and the number of all checks."""
    groups = list(examine_table(table, sample=sample))
    every = [finding for group in groups for finding in group.findings]
    bad: list[Finding] = [each for each in every if each.result in (Result.WARNING, Result.FAILED)]
    bad.sort(key=lambda each: each.result is not Result.FAILED)
    failed = sum(each.result is Result.FAILED for each in bad)
    return {"checks": len({each.check for each in every}), "failed": failed, "count": len(bad), "shown": bad[:_MOST]}

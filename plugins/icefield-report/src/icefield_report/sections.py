"""The sections of a page about a table: those of this plugin, and the sections of all plugins in order."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from icefield import IcefieldError, Table

from icefield_report.facts import Facts
from icefield_report.hookspecs import ReportSection
from icefield_report.page import part
from icefield_report.plots import plots_of

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SectionContext:
    """The table of a section, with the facts that were read already.

    ``prefix`` begins the ids of all elements. ``level`` is the level of the section's own heading.
    """

    table: Table
    facts: Facts
    prefix: str
    level: int


@dataclass(frozen=True, slots=True)
class RenderedSection:
    """A section as the page shows it; ``error`` stands in place of the content."""

    name: str
    title: str
    content: Any = None
    error: str = ""

    @property
    def is_html(self) -> bool:
        """Whether the content is a part of the page, and no text."""
        return hasattr(self.content, "__html__")


def sections_of(context: SectionContext, without: Collection[str] = ()) -> tuple[RenderedSection, ...]:
    """The sections of all plugins, except for those of some names.

    Raises ``PluginConflict`` for two sections of one name.
    """
    plugins, hook = context.table.io.plugins, "icefield_report_sections"
    names = {section.name for _, section in plugins.records(hook, ReportSection)} - {*without}
    found = [plugins.chosen(hook, ReportSection, name, "report section") for name in sorted(names)]
    rendered = []
    for plugin, section in sorted(found, key=lambda each: (each[1].order, each[1].name)):
        try:
            content = plugins.load(plugin, section.target, f"report section '{section.name}'")(context)
        except (IcefieldError, OSError) as error:
            rendered.append(RenderedSection(section.name, section.title, error=str(error)))
        except Exception as error:  # of a plugin: the other sections are shown
            _log.exception("the report section '%s' of plugin %s failed", section.name, plugin)
            rendered.append(RenderedSection(section.name, section.title, error=type(error).__name__))
        else:
            if content is not None:
                rendered.append(RenderedSection(section.name, section.title, content))
    return tuple(rendered)


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> Any:
    """A table as a part of a page: ``caption`` is its description for screen readers. All values are escaped."""
    return part("table", head, [tuple(row) for row in rows], caption)


def figures(context: SectionContext) -> Any:
    """The main numbers of the table."""
    return part("figures", context.facts)


def advice(context: SectionContext) -> Any:
    """Calls of maintenance that would help."""
    return part("advice", context.facts.maintenance, context.level)


def plots(context: SectionContext) -> Any:
    """The plots, each with its numbers."""
    return part("plots", plots_of(context.facts, context.prefix), context.level)


def about(context: SectionContext) -> Any:
    """Location, branches and tags, properties."""
    return part("about_table", context.facts)

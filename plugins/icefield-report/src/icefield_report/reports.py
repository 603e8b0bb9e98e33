"""Reports of a table and of a catalog."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from icefield import Catalog, IcefieldError, Table, __version__

from icefield_report.facts import Facts, facts_of
from icefield_report.page import rendered
from icefield_report.sections import RenderedSection, SectionContext, sections_of
from icefield_report.whole_files import write_whole


@dataclass(frozen=True, slots=True)
class ReportedTable:
    """One table of a page; ``error`` says why there is nothing about it."""

    id: str
    name: str
    facts: Facts | None = None
    sections: tuple[RenderedSection, ...] = ()
    error: str = ""


def report(table: Table) -> str:
    """A page about a table, in HTML: plots, and advice on maintenance.

    The page loads nothing from elsewhere and runs no script. Nothing is changed, and no data file is read.
    Raises ``InvalidMetadata`` for damaged manifests, and errors of the storage.
    """
    return rendered("table.html", table=_table(table, "table", 2), version=__version__)


def write_report(table: Table, path: str | os.PathLike[str]) -> None:
    """Write the page about a table into a local file, whole or not at all.

    Raises as ``report`` does, and ``OSError``.
    """
    write_whole(Path(path), report(table))


def catalog_report(catalog: Catalog) -> str:
    """A page about all tables of a catalog: a list of the tables, and a section for each.

    The section of an unreadable table shows the error. Raises errors of the catalog itself.
    """
    return rendered("catalog.html", name=catalog.name, tables=tuple(_reported(catalog)), version=__version__)


def write_catalog_report(catalog: Catalog, path: str | os.PathLike[str]) -> None:
    """Write the page about a catalog into a local file, whole or not at all.

    Raises as ``catalog_report`` does, and ``OSError``.
    """
    write_whole(Path(path), catalog_report(catalog))


def _reported(catalog: Catalog) -> Iterator[ReportedTable]:
    for number, identifier in enumerate(sorted(catalog.walk_tables()), 1):
        own = f"table-{number}"
        try:
            yield _table(catalog.load_table(identifier), own, 3)
        except (IcefieldError, OSError) as error:
            yield ReportedTable(own, ".".join(identifier), error=str(error))


def _table(table: Table, own: str, level: int) -> ReportedTable:
    facts = facts_of(table)
    return ReportedTable(own, facts.name, facts, sections_of(SectionContext(table, facts, own, level)))

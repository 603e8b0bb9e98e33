"""Reports of a table and of a catalog."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from icefield import Catalog, IcefieldError, Table, __version__

from icefield_report.facts import Facts, facts_of
from icefield_report.page import rendered
from icefield_report.plots import Plot, plots_of
from icefield_report.whole_files import write_whole


@dataclass(frozen=True, slots=True)
class Section:
    """The section of a page about one table; ``error`` says why it is empty."""

    id: str
    name: str
    facts: Facts | None = None
    plots: tuple[Plot, ...] = ()
    error: str = ""


def report(table: Table) -> str:
    """A page about a table, in HTML: plots, and advice on maintenance.

    The page loads nothing from elsewhere and runs no script. Nothing is changed, and no data file is read.
    Raises ``InvalidMetadata`` for damaged manifests, and errors of the storage.
    """
    return rendered("table.html", section=_section(table, "table"), version=__version__)


def write_report(table: Table, path: str | os.PathLike[str]) -> None:
    """Write the page about a table into a local file, whole or not at all.

    Raises as ``report`` does, and ``OSError``.
    """
    write_whole(Path(path), report(table))


def catalog_report(catalog: Catalog) -> str:
    """A page about all tables of a catalog: a list of the tables, and a section for each.

    The section of an unreadable table shows the error. Raises errors of the catalog itself.
    """
    sections = tuple(_sections(catalog))
    return rendered("catalog.html", name=catalog.name, sections=sections, version=__version__)


def write_catalog_report(catalog: Catalog, path: str | os.PathLike[str]) -> None:
    """Write the page about a catalog into a local file, whole or not at all.

    Raises as ``catalog_report`` does, and ``OSError``.
    """
    write_whole(Path(path), catalog_report(catalog))


def _sections(catalog: Catalog) -> Iterator[Section]:
    for number, identifier in enumerate(sorted(_tables(catalog)), 1):
        own = f"table-{number}"
        try:
            yield _section(catalog.load_table(identifier), own)
        except (IcefieldError, OSError) as error:
            yield Section(own, ".".join(identifier), error=str(error))


def _section(table: Table, own: str) -> Section:
    facts = facts_of(table)
    return Section(own, facts.name, facts, tuple(plots_of(facts, own)))


def _tables(catalog: Catalog) -> Iterator[tuple[str, ...]]:
    waiting = list(catalog.list_namespaces())
    seen = set(waiting)
    while waiting:
        namespace = waiting.pop()
        yield from catalog.list_tables(namespace)
        inner = [each for each in catalog.list_namespaces(namespace) if each not in seen]
        seen.update(inner)
        waiting += inner

"""The parts of a page: titles, facts and tables. Every text is escaped here, and shortened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from icefield_notebook.texts import count, short

MOST_ROWS: Final = 20
"""The number of rows of a table that are shown."""

_LONGEST: Final = 200
"""The number of characters of a text that are shown."""

# The colours are those of the notebook's theme. Notebooks align texts of tables to the right, and stripe their rows.
_STYLE: Final = """
.icefield-page { line-height: 1.45; overflow-x: auto; }
.icefield-page p { margin: .2em 0; }
.icefield-page small, .icefield-page tr > th, .icefield-page td.icefield-note { opacity: .7; }
.icefield-page small { font-size: inherit; margin-left: .6em; }
.icefield-page table, .icefield-page table tr { background: none !important; border: 0; color: inherit; }
.icefield-page table { border-collapse: collapse; font-size: inherit; margin: .4em 0; width: auto; }
.icefield-page table tr > th, .icefield-page table tr > td { background: none !important; border: 0;
  border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); color: inherit; font-size: inherit;
  max-width: 48em; overflow-wrap: anywhere; padding: .2em 1.4em .2em 0;
  text-align: left !important; vertical-align: top; }
.icefield-page table tr > th { font-weight: 600; white-space: nowrap; }
.icefield-page table tr > td.icefield-number { font-variant-numeric: tabular-nums; text-align: right !important; }
.icefield-page summary { cursor: pointer; }
.icefield-page pre { background: none; color: inherit; margin: .2em 0; white-space: pre-wrap; }
"""


class Cell(str):
    """A text in a cell: ``numeric`` ones stand to the right, and notes are pale."""

    __slots__ = ()
    kind = ""


class Figure(Cell):
    """A number in a cell."""

    __slots__ = ()
    kind = "icefield-number"


class Note(Cell):
    """A text that matters less than the others of its row."""

    __slots__ = ()
    kind = "icefield-note"


def page(title: object, *parts: str, about: Iterable[object] = ()) -> str:
    """A page: a title, what it is about in a few words, and parts that are HTML."""
    words = " · ".join(short(each, _LONGEST) for each in about)
    head = f"<p><strong>{text(title)}</strong>{f'<small>{escape(words)}</small>' if words else ''}</p>"
    return f'<div class="icefield-page"><style>{_STYLE}</style>{head}{"".join(parts)}</div>'


def text(value: object) -> str:
    """A text of the page, shortened and escaped."""
    return escape(short(value, _LONGEST))


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """A table of names and values; a value of None is left out."""
    rows = [f"<tr><th>{text(name)}</th>{_cell(value)}</tr>" for name, value in pairs if value is not None]
    return f"<table><tbody>{''.join(rows)}</tbody></table>" if rows else ""


def grid(columns: Sequence[str], rows: Iterable[Sequence[object]], total: int) -> str:
    """A table with a heading: the first rows, and how many more there are. ``total`` is the number of all rows."""
    heading = "".join(f"<th>{text(name)}</th>" for name in columns)
    shown = [f"<tr>{''.join(map(_cell, row))}</tr>" for row, _ in zip(rows, range(MOST_ROWS), strict=False)]
    body = f"<table><thead><tr>{heading}</tr></thead><tbody>{''.join(shown)}</tbody></table>"
    return body + (f"<p><small>... {count(total - MOST_ROWS)} more</small></p>" if total > MOST_ROWS else "")


def folded(title: str, part: str) -> str:
    """A part that opens by a click on its title."""
    return f"<details><summary>{text(title)}</summary>{part}</details>"


def source(code: str, most: int = 2_000) -> str:
    """Code with its line breaks, such as a query."""
    lines = "\n".join(short(line, _LONGEST) for line in code[:most].splitlines())
    return f"<pre>{escape(lines)}{'...' if len(code) > most else ''}</pre>"


def _cell(value: object) -> str:
    kind = f' class="{value.kind}"' if isinstance(value, Cell) and value.kind else ""
    return f"<td{kind}>{text(value)}</td>"

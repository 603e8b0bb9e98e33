"""Rows on a terminal, by rich: columns fitted to its width. It is imported only if the output is a terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from rich.console import Console
from rich.table import Table
from rich.text import Text

from icefield_cli.rendering import through_pager

_AT_ONCE = 200
"""The number of rows that are laid out together: the first of them decide the widths of the columns."""


def print_table(
    heading: Sequence[str], cells: Iterator[list[str]], whole: Sequence[bool], *, pager: bool = False
) -> None:
    """Print rows, cut to the width of the terminal; ``whole`` marks the columns that are cut last.

    ``pager``: whether rows that do not fit the height of the terminal go through ``$PAGER``.
    If there is no room for all columns, the first and the last are shown, and the standard error says so.
    Cells are plain: nothing in them is markup, nor an emoji's name, and no control character is left in them.
    """
    console = Console(file=sys.stdout, highlight=False, emoji=False, markup=False)
    parts = _laid_out(console, heading, cells, whole)
    first = next(parts)
    if pager and first.count("\n") >= console.height:
        through_pager(chain([first], parts), color=console.color_system is not None)
        return
    for part in chain([first], parts):
        print(part, end="", flush=True)  # by Python, since rich ends the process when a pipe is closed


def _laid_out(
    console: Console, heading: Sequence[str], cells: Iterator[list[str]], whole: Sequence[bool]
) -> Iterator[str]:
    """The lines of a table, for many rows at a time."""
    layout: Layout | None = None
    while (rows := list(islice(cells, _AT_ONCE))) or layout is None:
        is_first = layout is None
        if layout is None:
            layout = fitted(heading, rows, whole, console.width)
        table = Table(
            box=None, pad_edge=False, padding=(0, layout.gap, 0, 0), show_header=is_first, header_style="bold"
        )
        for at, width in zip(layout.columns, layout.widths, strict=True):
            name = _LEFT_OUT if at is None else heading[at]
            table.add_column(Text(_folded(name, width), no_wrap=False, overflow="fold"), width=width, no_wrap=True)
        for row in rows:
            shown = [_LEFT_OUT if at is None else row[at] for at in layout.columns]
            table.add_row(*map(_cut, shown, layout.widths))
        with console.capture() as laid_out:
            console.print(table)
        yield laid_out.get()
    missing = len(heading) - sum(at is not None for at in layout.columns)
    if missing:
        print(f"{missing} of {len(heading)} columns do not fit here; --output json has them all", file=sys.stderr)


@dataclass(frozen=True, slots=True)
class Layout:
    """The shown columns (None for the columns left out between them), their widths, and the space between them."""

    columns: list[int | None]
    widths: list[int]
    gap: int


def fitted(heading: Sequence[str], rows: Sequence[Sequence[str]], whole: Sequence[bool], width: int) -> Layout:
    """How columns fit a width.

    First the space between columns shrinks, then locations, then the widest columns that may be cut. If even the least
    widths do not fit, columns in the middle are left out.
    """
    texts = [[name, *(row[i] for row in rows)] for i, name in enumerate(heading)]
    natural = [max(map(_width, each)) for each in texts]
    least = [min(each, _LEAST_WHOLE if one else _LEAST) for each, one in zip(natural, whole, strict=True)]
    columns = _with_room(least, width)
    widths = [1 if at is None else natural[at] for at in columns]
    gap = 2 if sum(widths) + 2 * (len(columns) - 1) <= width else 1
    room = width - gap * (len(columns) - 1)
    located = [at is not None and any("://" in cell for cell in texts[at]) for at in columns]
    cuttable = [at is not None and not whole[at] for at in columns]
    for may_be_cut, floor in ((located, _LEAST_LOCATION), (cuttable, _LEAST), ([True] * len(columns), 1)):
        while sum(widths) > room:
            at = max((i for i, cut in enumerate(may_be_cut) if cut), key=lambda i: widths[i], default=None)
            if at is None or widths[at] <= floor:
                break
            widths[at] -= 1
    return Layout(columns, widths, gap)


def _with_room(least: Sequence[int], width: int) -> list[int | None]:
    """All columns; or as many first and last columns, in turns, as fit with a narrow mark between them."""
    if sum(least) + len(least) - 1 <= width:
        return [*range(len(least))]
    front: list[int | None] = [0]
    back: list[int | None] = []
    room = width - least[0] - 2
    for turn in range(1, len(least)):
        at = turn // 2 if turn % 2 == 0 else len(least) - 1 - turn // 2
        room -= least[at] + 1
        if room < 0:
            break
        (front if turn % 2 == 0 else back).append(at)
    return [*front, None, *reversed(back)] if len(least) > 1 else front


_LEAST = 10
"""Other columns are cut before a column gets narrower than this, the width of a date."""

_LEAST_WHOLE = 40
"""The width that a column marked ``whole`` keeps, where possible, when it is cut."""

_LEAST_LOCATION = 20
"""Locations are cut to this width before other columns are cut: the names of files differ within it."""

_LEFT_OUT = "…"


def _cut(cell: str, width: int) -> Text:
    """A cell as wide as its column.

    A location keeps its end, where files differ. The fields of a partition keep their ends, too, each on a line of its
    own.
    """
    over, fields = _width(cell) - width, cell.split(", ")
    if over > 0 and "://" in cell:
        cell = _end_of(cell, width)
    elif over > 0 and all("=" in field for field in fields):
        cell = ",\n".join([*(_end_of(field, width - 1) for field in fields[:-1]), _end_of(fields[-1], width)])
    return Text(cell, no_wrap=True, overflow="ellipsis")


def _end_of(cell: str, width: int) -> str:
    over = _width(cell) - width
    return "…" + cell[over + 1 :] if over > 0 else cell


def _folded(name: str, width: int) -> str:
    """A heading in lines that end between its words."""
    lines = [""]
    for word in re.findall(r"_*[^_ ]+_*|[_ ]+", name):
        if lines[-1] and _width(lines[-1] + word) > width:
            lines.append("")
        lines[-1] += word
    return "\n".join(lines)


def _width(cell: str) -> int:
    return Text(cell).cell_len

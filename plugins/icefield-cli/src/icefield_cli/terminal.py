"""Rows on a terminal, by rich: columns fitted to its width. Imported where the output is one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice

from rich.console import Console
from rich.table import Table
from rich.text import Text

_AT_ONCE = 200
"""Rows that are laid out together: the first of them say how wide the columns are."""


def print_table(heading: Sequence[str], cells: Iterator[list[str]], whole: Sequence[bool]) -> None:
    """Print rows, cut to the width of the terminal; columns of which ``whole`` says so are not cut while others can be.

    Cells are plain: nothing in them is markup, nor an emoji's name, and no control character is left in them.
    """
    console = Console(file=sys.stdout, highlight=False, emoji=False, markup=False)
    widths: list[int] | None = None
    while (rows := list(islice(cells, _AT_ONCE))) or widths is None:
        is_first = widths is None
        if widths is None:
            gap, widths = fitted(heading, rows, whole, console.width)
        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), show_header=is_first, header_style="bold")
        for name, width in zip(heading, widths, strict=True):
            table.add_column(Text(name, no_wrap=False, overflow="fold"), width=width, no_wrap=True)
        for row in rows:
            table.add_row(*map(_cut, row, widths))
        with console.capture() as laid_out:
            console.print(table)
        print(laid_out.get(), end="", flush=True)  # by Python, since rich ends the process when a pipe is closed


def fitted(
    heading: Sequence[str], rows: Sequence[Sequence[str]], whole: Sequence[bool], width: int
) -> tuple[int, list[int]]:
    """The space between columns and how wide each is, so that they fit.

    The space gives way first, then the widest that may be cut, the others at last.
    """
    texts = [[name, *(row[i] for row in rows)] for i, name in enumerate(heading)]
    widths = [max(map(_width, each)) for each in texts]
    gap = 2 if sum(widths) + 2 * (len(heading) - 1) <= width else 1
    room = width - gap * (len(heading) - 1)
    for may_be_cut in ([not each for each in whole], [True] * len(whole)):
        while sum(widths) > room:
            at = max((i for i, cut in enumerate(may_be_cut) if cut), key=lambda i: widths[i], default=None)
            if at is None or widths[at] <= _LEAST:
                break
            widths[at] -= 1
    return gap, widths


_LEAST = 8
"""Columns are not cut to less, where others can be."""


def _cut(cell: str, width: int) -> Text:
    """A cell as wide as its column. Of a location the end is kept, by which files differ."""
    if "://" in cell and (over := _width(cell) - width) > 0:
        cell = "…" + cell[over + 1 :]
    return Text(cell, no_wrap=True, overflow="ellipsis")


def _width(cell: str) -> int:
    return Text(cell).cell_len

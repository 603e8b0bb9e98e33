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
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=widths is None, header_style="bold")
        measured = widths or fitted(heading, rows, whole, console.width)
        for name, width in zip(heading, measured, strict=True):
            table.add_column(_text(name), width=width, no_wrap=True)
        for row in rows:
            table.add_row(*map(_text, row))
        with console.capture() as laid_out:
            console.print(table)
        print(laid_out.get(), end="", flush=True)  # by Python, since rich ends the process when a pipe is closed
        widths = measured


def fitted(heading: Sequence[str], rows: Sequence[Sequence[str]], whole: Sequence[bool], width: int) -> list[int]:
    """How wide each column is, so that they fit: the widest that may be cut give way first, the others at last."""
    texts = [[name, *(row[i] for row in rows)] for i, name in enumerate(heading)]
    widths = [max(map(_width, each)) for each in texts]
    room = width - 2 * (len(heading) - 1)
    for may_be_cut in ([not each for each in whole], [True] * len(whole)):
        while sum(widths) > room:
            at = max((i for i, cut in enumerate(may_be_cut) if cut), key=lambda i: widths[i], default=None)
            if at is None or widths[at] <= _LEAST:
                break
            widths[at] -= 1
    return widths


_LEAST = 8
"""Columns are not cut to less, where others can be."""


def _text(cell: str) -> Text:
    return Text(cell, no_wrap=True, overflow="ellipsis")


def _width(cell: str) -> int:
    return Text(cell).cell_len

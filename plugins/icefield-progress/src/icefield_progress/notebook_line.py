"""A line below a notebook's cell: an element ``progress`` of HTML, which needs no widgets."""

from __future__ import annotations

from html import escape
from typing import Any

from IPython.display import display

from icefield_progress.texts import amount, elapsed


class NotebookLine:
    """An output of the running cell, which is replaced whenever it changed. Its last state stays."""

    def __init__(self) -> None:
        self._shown: Any = None

    def draw(self, what: str, done: int, total: int | None, seconds: float) -> None:
        """See ``DrawnLine``."""
        bar = "" if total is None else f'<progress value="{done}" max="{max(total, 1)}"></progress> '
        text = " ".join(filter(None, (amount(done, total), elapsed(seconds))))
        plain = f"{what} {text}"
        page = {"text/html": f"<div>{escape(what)} {bar}{text}</div>", "text/plain": plain}
        if self._shown is None:
            self._shown = display(page, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._shown.update(page, raw=True)

    def close(self) -> None:
        """Leave it."""


def new_line() -> NotebookLine:
    """A line that is not drawn yet."""
    return NotebookLine()

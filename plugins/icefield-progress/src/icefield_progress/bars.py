"""Progress bars: the state of a piece of work, and the thread that draws it on a terminal."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from threading import Event, Thread, get_ident
from time import monotonic
from types import TracebackType
from typing import Final, Self

from icefield.toolkit import reset_after_fork

from icefield_progress.places import DrawnLine, notebook_shell

_TICK: Final = 0.1
"""The seconds between two drawings."""


class ProgressBar:
    """Shows the elapsed time and the amount of finished work, until the work ends. A context manager.

    Work of less than ``first_seconds`` shows nothing, and imports nothing for it. After ``idle_seconds`` without an
    update, the bar is hidden until the next one: an iterator may have been left behind.
    """

    def __init__(
        self, what: str, *, shown: bool, first_seconds: float = 1.0, idle_seconds: float | None = None
    ) -> None:
        self.shown = shown
        self.thread = get_ident()
        self._what = what
        self._first_seconds, self._idle_seconds = first_seconds, idle_seconds
        self._step, self._done = "", 0
        self._total: int | None = None
        self._began = self._updated = self._drawn = monotonic()
        self._line: DrawnLine | None = None
        self._ended = Event()
        self._thread: Thread | None = None
        self._is_in_notebook = shown and notebook_shell() is not None

    def reach(self, step: str, done: int, total: int | None) -> None:
        """Note the finished amount of a step, and the total amount if it is known."""
        self._step, self._done, self._total = step, done, total
        self._updated = monotonic()
        # A notebook shows output next to the cell whose thread draws it.
        if self._is_in_notebook and self._updated - max(self._began + self._first_seconds, self._drawn) >= _TICK:
            self._draw()

    def __enter__(self) -> Self:
        _OPEN.append(self)
        if self.shown and not self._is_in_notebook:
            self._thread = Thread(target=self._watch, name="icefield-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the bar. Without effect on an ended one."""
        if self in _OPEN:
            _OPEN.remove(self)
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        elif self._line is not None:
            self._draw()
            self._line = None

    def _watch(self) -> None:
        wait = self._first_seconds
        while not self._ended.wait(wait):
            wait = _TICK
            if self._idle_seconds is None or monotonic() - self._updated < self._idle_seconds:
                self._draw()
            else:
                self._wipe()
        self._wipe()

    def _draw(self) -> None:
        if self._line is None:
            self._line = _new_line(self._is_in_notebook)
        what = f"{self._what}: {self._step}" if self._step else self._what
        self._drawn = monotonic()
        self._line.draw(_printable(what), self._done, self._total, self._drawn - self._began)

    def _wipe(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None


def current_bar() -> ProgressBar | None:
    """The innermost bar that has not ended, shown or not."""
    return next(iter(_OPEN[-1:]), None)  # in one step: another thread may end a bar at any time


def _new_line(is_in_notebook: bool) -> DrawnLine:
    """A line in the place of this process. Its module is imported now, since that takes a while."""
    name = "notebook_line" if is_in_notebook else "rich_line" if find_spec("rich") else "plain_line"
    line: DrawnLine = import_module(f"icefield_progress.{name}").new_line()
    return line


def _printable(text: str) -> str:
    """The text without characters that steer a terminal: names come from tables."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text[:200])


_OPEN: Final[list[ProgressBar]] = []

reset_after_fork(_OPEN.clear)

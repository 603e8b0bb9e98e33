"""Progress of work that takes long, on a terminal."""

from __future__ import annotations

from importlib import import_module
from threading import Timer
from types import TracebackType
from typing import Any, Self

_FIRST_SECONDS = 1.0


class Progress:
    """Shows the elapsed time and the amount of finished work on the standard error, until the work ends.

    Work of less than a second shows nothing, and imports nothing for it.
    """

    def __init__(self, what: str, *, shown: bool, first_seconds: float = _FIRST_SECONDS) -> None:
        self.shown = shown
        self._what = what
        self._step = ""
        self._done = 0
        self._total: int | None = None
        self._line: Any = None
        self._timer = Timer(first_seconds, self._begin) if shown else None

    def advance(self, number: int) -> None:
        """Note further finished items."""
        self._done += number
        self._update()

    def reach(self, step: str, done: int, total: int | None) -> None:
        """Note the finished amount of a step, and the total amount if it is known."""
        self._step, self._done, self._total = step, done, total
        self._update()

    def __enter__(self) -> Self:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()  # it may be about to begin
        if self._line is not None:
            self._line.stop()

    def _begin(self) -> None:
        line = import_module("icefield_cli.progress_line").ProgressLine(self._what)
        line.update(self._step, self._done, self._total)
        line.start()
        self._line = line

    def _update(self) -> None:
        if self._line is not None:
            self._line.update(self._step, self._done, self._total)

"""A line on the terminal for work that takes long."""

from __future__ import annotations

import sys
import time
from threading import Event, Thread
from types import TracebackType
from typing import Self

_FIRST_SECONDS = 1.0
_EVERY_SECONDS = 0.5


class Progress:
    """Shows on the standard error how long something has taken, and how much was done, until it is over.

    Nothing is shown of what is over within a second.
    """

    def __init__(self, what: str, *, shown: bool, first_seconds: float = _FIRST_SECONDS) -> None:
        self._what = what
        self._done = 0
        self._step = ""
        self._over = Event()
        self._first = first_seconds
        self._thread = Thread(target=self._show, daemon=True) if shown else None
        self._started = 0.0

    def advance(self, number: int) -> None:
        """Note that so many more were done."""
        self._done += number

    def reach(self, step: str, done: int, total: int | None) -> None:
        """Note how far a step has come, of how much, where that is known."""
        self._step = f" {step} {done:,}" if total is None else f" {step} {done:,} of {total:,}"

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        wait, shown = self._first, False
        while not self._over.wait(wait):
            done = f" {self._done:,}" if self._done else self._step
            print(f"\r\x1b[K{self._what}{done} … {time.monotonic() - self._started:.0f} s", end="", file=sys.stderr)
            sys.stderr.flush()
            wait, shown = _EVERY_SECONDS, True
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr)
            sys.stderr.flush()

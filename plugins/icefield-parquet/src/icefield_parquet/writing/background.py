"""Work in a thread of its own, next to that of the caller."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from types import TracebackType
from typing import Self


class Background:
    """Runs a function in a thread during the block of a ``with`` statement, and joins the thread at its end.

    An exception of the function is raised at the end of the block, unless the block raises its own.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, name="icefield-parquet-background")

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.join()
        if error is None and self._error is not None:
            raise self._error

"""Maintenance work, done by this process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from icefield.abc import Attempt, Done, Note, Work, WorkRunner, unnoted
from icefield.errors import IcefieldError
from icefield.toolkit import map_ahead

T = TypeVar("T")
R = TypeVar("R")


class LocalRunner(WorkRunner):
    """Does work in this process: in the calling thread, or in several threads, which take items one after another."""

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads

    @property
    def slots(self) -> int:
        """The number of threads."""
        return self._threads

    def attempts(
        self,
        work: Work[T, R],
        items: Iterable[T],
        note: Note = unnoted,
        *,
        keep_going: bool = False,
        done: Done | None = None,
    ) -> list[R | Exception]:
        """See ``WorkRunner.attempts``."""

        def attempt(numbered: tuple[int, T]) -> R | Exception:
            number, item = numbered
            try:
                return work.do(item, Attempt(number, note=note))
            except (IcefieldError, OSError) as error:
                if not keep_going:
                    raise
                return error

        found = []
        for result in map_ahead(enumerate(items, 1), attempt, self._threads):
            found.append(result)
            if done is not None:
                done()
        return found

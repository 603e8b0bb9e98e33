"""The work of upkeep, done by this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

from icefield.abc import Attempt, Done, Note, Work, WorkRunner
from icefield.abc.work import unnoted
from icefield.errors import IcefieldError

T = TypeVar("T")
R = TypeVar("R")

_AHEAD: Final = 2
"""Items begun beyond one a thread."""


class LocalRunner(WorkRunner):
    """Does work in this process: in the calling thread, or by some threads, which take items as they are drawn."""

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

        def attempt(number: int, item: T) -> R | Exception:
            try:
                return work.do(item, Attempt(number, note=note))
            except (IcefieldError, OSError) as error:
                if not keep_going:
                    raise
                return error

        found = []
        for result in self._each(attempt, enumerate(items, 1)):
            found.append(result)
            if done is not None:
                done()
        return found

    def _each(
        self, attempt: Callable[[int, T], R | Exception], items: Iterator[tuple[int, T]]
    ) -> Iterator[R | Exception]:
        if self._threads == 1:
            yield from (attempt(*each) for each in items)
            return
        running: deque[Future[R | Exception]] = deque()
        with ThreadPoolExecutor(self._threads, thread_name_prefix="icefield-upkeep") as pool:
            try:
                for each in items:
                    running.append(pool.submit(attempt, *each))
                    if len(running) >= self._threads + _AHEAD:
                        yield running.popleft().result()
                while running:
                    yield running.popleft().result()
            finally:
                for left in running:
                    left.cancel()

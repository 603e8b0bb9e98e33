"""A runner that pickles work, items and results as if another process did the work."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import TypeVar

from icefield.abc import Attempt, Done, Note, Work, WorkRunner
from icefield.errors import IcefieldError

T = TypeVar("T")
R = TypeVar("R")


class PicklingRunner(WorkRunner):
    """Runs the work on each item after pickling and unpickling both, and returns unpickled results."""

    least_manifest_bytes = 0

    def __init__(self, slots: int = 3) -> None:
        self._slots = slots
        self.items = 0

    @property
    def slots(self) -> int:
        return self._slots

    def attempts(
        self,
        work: Work[T, R],
        items: Iterable[T],
        note: Note = lambda _: None,
        *,
        keep_going: bool = False,
        done: Done | None = None,
    ) -> list[R | Exception]:
        sent = pickle.dumps(work)
        results: list[R | Exception] = []
        for item in [pickle.dumps(each) for each in items]:
            self.items += 1
            attempt = Attempt(self.items, number=7, threads=1)
            try:
                result = pickle.dumps(pickle.loads(sent).do(pickle.loads(item), attempt))
            except (IcefieldError, OSError) as error:
                if not keep_going:
                    raise
                results.append(error)
                continue
            results.append(pickle.loads(result))
            for location in work.files(pickle.loads(result)):
                note(location)
            if done is not None:
                done()
        return results

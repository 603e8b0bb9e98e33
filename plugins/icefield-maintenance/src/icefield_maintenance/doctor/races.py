"""Races for one name: several threads start at once, and one should win."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from icefield.errors import FileExists


def race(rivals: int, attempt: Callable[[int], bool]) -> list[int]:
    """Start all rivals at once and return the winners; ``attempt`` returns whether it won. Re-raises an error."""
    barrier = Barrier(rivals)

    def run(rival: int) -> bool:
        barrier.wait()
        return attempt(rival)

    with ThreadPoolExecutor(rivals) as pool:
        return [rival for rival, won in enumerate(pool.map(run, range(rivals))) if won]


def not_refused(action: Callable[[], object]) -> bool:
    """Whether an action for a free name was carried out rather than refused because the name is taken."""
    try:
        action()
    except FileExists:
        return False
    return True

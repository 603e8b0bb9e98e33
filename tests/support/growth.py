"""Growth of CPU time: the factor by which the CPU time of an operation grows when its input doubles."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

MOST_GROWTH = 2.6
"""Twice the input may cost at most so many times the CPU time: less than 3, let alone 4, leaves no quadratic part."""

_FEWEST, _MOST = 3, 9
_HOPELESS = 3.5

Work = Callable[[], object]


def growth(prepare: Callable[[int], Work], size: int, bound: float = MOST_GROWTH) -> float:
    """Return the CPU time of the work from ``prepare(2 * size)``, as a multiple of the time from ``prepare(size)``.

    Only the returned work is timed: CPU time of all threads of the process, the least of some rounds, since other
    processes can only add to it. A ratio just above ``bound`` is measured again, up to nine rounds.
    """
    prepare(min(size, 8))()  # imports and other work that is done once
    small, large = float("inf"), float("inf")
    for turn in range(_MOST):
        small = min(small, _seconds(prepare(size)))
        large = min(large, _seconds(prepare(2 * size)))
        if turn + 1 >= _FEWEST and not bound * small < large < _HOPELESS * small:
            break
    return large / small


def _seconds(work: Work) -> float:
    # A full garbage collection happens only in some runs, and its cost depends on all objects of the process.
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        work()
        return time.process_time() - start
    finally:
        gc.enable()

"""State that a forked process resets."""

from __future__ import annotations

import functools
import inspect
import os
import weakref
from collections.abc import Callable
from itertools import count
from typing import Final

_RESETS: Final[dict[int, Callable[[], Callable[[], None] | None]]] = {}
_NUMBERS: Final = count()


def reset_after_fork(reset: Callable[[], None]) -> None:
    """Call ``reset`` in each process that is forked from now on, before anything else runs there.

    A forked process has one thread. A lock that another thread of the parent held is never released there. A pool has
    no threads, and an interrupted change may leave state inconsistent. Therefore ``reset`` makes new locks and empty
    state. If ``reset`` is a method, its owner is not kept alive; a function is kept alive. ``reset`` takes no lock.
    """
    number = next(_NUMBERS)
    if not inspect.ismethod(reset) or inspect.isclass(reset.__self__):
        _RESETS[number] = lambda: reset
        return
    function, forget = reset.__func__, _RESETS.pop  # no global names: the interpreter may have ended
    owner = weakref.ref(reset.__self__, lambda _: forget(number, None))

    def found() -> Callable[[], None] | None:
        alive = owner()
        return None if alive is None else functools.partial(function, alive)

    _RESETS[number] = found


def _in_child() -> None:
    for found in list(_RESETS.values()):
        reset = found()
        if reset is not None:
            reset()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_in_child)  # noqa: TID251

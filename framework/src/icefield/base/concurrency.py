"""Values that are computed once without a lock, and state that a forked process begins anew."""

from __future__ import annotations

import functools
import inspect
import os
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any, Final, Generic, Self, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class lazy(Generic[T_co]):  # noqa: N801 -- a decorator, named like ``property``
    """A property that is computed when it is first read, and kept in the instance.

    It takes no lock. ``functools.cached_property`` of Python 3.11 holds one lock for all instances of a class, so that
    a slow table or service would stall every other. Threads that read it first at once may each compute the value; the
    last one is kept.
    """

    def __init__(self, compute: Callable[[Any], T_co]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T_co: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Self | T_co:
        if instance is None:
            return self
        # Python looks into the instance first, so this runs only until a value is there.
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


_RESETS: Final[dict[int, Callable[[], Callable[[], None] | None]]] = {}
_NUMBERS: Final = count()


def reset_after_fork(reset: Callable[[], None]) -> None:
    """Call ``reset`` in each process that is forked from now on, before anything else runs there.

    A forked process has one thread. A lock that another thread of the parent held is never released there, a pool has
    no threads, and what was being changed may be half changed: ``reset`` makes new locks and empty state. The owner of
    a method is not kept alive; a function is. ``reset`` takes no lock.
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
